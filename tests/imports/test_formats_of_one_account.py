"""One account is one ledger, whatever formats tell it, in whichever order, in whole or in part."""

import dataclasses
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import date
from decimal import Decimal
from functools import cache
from itertools import combinations
from pathlib import Path
from random import Random

import pytest

from analytics.records import AccountRecord, Batch, Record
from connectors.formats import read_records
from storage.importing.batches import read_batch
from tests.conftest import NOW, empty_store, seeds
from tests.engines import ENGINE, STORE, OpenStore, opened
from tests.imports.formats_of_one_account import FORMATS, JOINED, OPENING, Row, records_in, rows, saved_by_a_spreadsheet
from tests.storage.conftest import GIRO, Bank, files_of, make_bank

pytestmark = pytest.mark.requirement("import.formats")
LEDGER = rows()
MONEY = sorted((row.day, row.amount) for row in LEDGER)


def files_of_somebody(database: OpenStore, name: str) -> Bank:
    return files_of(make_bank(database, NOW, name))


def bring(files: Bank, format_: str, told: Sequence[Row], *, first: int = 0) -> int:
    """How many bookings are new; `first` is the place in the ledger of the first row that is told."""
    opening = OPENING + sum((row.amount for row in LEDGER[:first]), Decimal(0))
    files.count += 1
    batch = Batch(id=f"b{files.count}", records=iter(records_of_giro(format_, tuple(told), opening)))
    return files.store(read_batch(batch, today=NOW.date())).new_transactions


@cache
def records_of_giro(format_: str, told: tuple[Row, ...], opening: Decimal) -> list[Record]:
    return [GIRO if isinstance(each, AccountRecord) else each for each in records_in(format_, told, opening)]


def money(files: Bank) -> list[tuple[date, Decimal]]:
    return sorted((row["booking_date"], row["amount"]) for row in files.rows())


@pytest.fixture(scope="module")
def each_format_told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mapping[str, Bank]]:
    """The folder of a store in which the files of ten people have told the ledger, each in another format, and these
    files; tests copy it."""
    folder = tmp_path_factory.mktemp("told")
    with closing(empty_store(folder / STORE)) as database:
        told = {format_: files_of_somebody(database, format_) for format_ in FORMATS}
        assert {bring(files, format_, LEDGER) for format_, files in told.items()} == {len(LEDGER)}
    return folder, told


@pytest.fixture
def told_in(each_format_told: tuple[Path, Mapping[str, Bank]], tmp_path: Path) -> Iterator[Mapping[str, Bank]]:
    """By format the files of somebody that have told the ledger in it."""
    folder, told = each_format_told
    with closing(opened(ENGINE.url(ENGINE.copy(folder, tmp_path / "copy") / STORE))) as database:
        yield {format_: dataclasses.replace(files, database=database) for format_, files in told.items()}


@pytest.mark.parametrize(("one", "other"), [*combinations(FORMATS, 2)])
@pytest.mark.sampled
def test_two_formats_tell_one_ledger_in_either_order_under_the_first_ids(
    told_in: Mapping[str, Bank], one: str, other: str
) -> None:
    for first, second in ((one, other), (other, one)):
        files = told_in[first]
        before = files.ids()
        assert [bring(files, second, LEDGER), bring(files, first, LEDGER)] == [0, 0]
        assert (files.ids(), money(files)) == (before, MONEY)


SHORT = rows("""
    2026-10-01 | -850.00  | Hausverwaltung Müller GmbH & Co. KG | Miete | DE62370400440123456789
    2026-10-01 | 2450.37  | Arbeit AG     | Lohn       | DE44500105175407324931
    2026-10-02 | -29.90   | Fit           | Abo        | DE70700500000000012345
    2026-10-02 | -29.90   | Fit           | Abo        | DE70700500000000012345
    2026-10-05 | -60.00   | Garage Meyer  | Huur       | DE62370400440123456789 | M-4711 | DE98ZZZ09
    2026-10-06 | -60.00   | Lidl          | Pfand      | DE70700500000000012345
    2026-10-06 | -60.00   | Aldi          | Kauf       | DE44500105175407324931
    2026-10-07 | -15.00   | Öko-Strom     | Rate 3     | DE44500105175407324931
    2026-10-07 | -15.00   | Öko-Strom     | Rate 4     | DE44500105175407324931
    2026-10-08 | -17.00   | Stadtwerke    | 4711       | DE44500105175407324931
""")


@pytest.mark.parametrize("joined", JOINED)
@pytest.mark.parametrize("other", ["camt.053.001.08", "MT940 with SVWZ+", "DKB", "Sparkasse", "CSV cut at 27"])
@pytest.mark.sampled
def test_a_purpose_of_one_short_word_is_known_where_name_and_purpose_are_one_text(
    database: OpenStore, joined: str, other: str
) -> None:
    for number, (first, second) in enumerate(((joined, other), (other, joined))):
        files = files_of_somebody(database, f"u{number}")
        assert [bring(files, format_, SHORT) for format_ in (first, second, first)] == [len(SHORT), 0, 0]


DIGITS = rows("""
    2026-10-02 | -49.99 | Stadtwerke | Strom          | DE62370400440123456789 | 20260000012345 | DE98ZZZ09999999999
    2026-10-02 | -49.99 | Stadtwerke | Strom          | DE62370400440123456789 | 20260000099999 | DE98ZZZ09999999999
    2026-10-05 | -12.00 | Verein     | 00004711       | DE44500105175407324931 | 0000815        | DE98ZZZ09999999999
    2026-10-06 | -13.00 | Verein     | 20260000012345 | DE44500105175407324931 | 12345678901234567890
""")


@pytest.mark.parametrize("format_", ["DKB", "camt.053.001.08", "MT940 with SVWZ+"])
def test_a_number_that_a_spreadsheet_has_made_approximate_or_cut_contradicts_nothing(
    database: OpenStore, format_: str
) -> None:
    content = saved_by_a_spreadsheet(FORMATS["DKB"](DIGITS, OPENING))
    assert (content.count(b"2,02600E+13"), content.count(b"4711")) == (3, 1)
    saved = [GIRO if isinstance(each, AccountRecord) else each for each in read_records(io.BytesIO(content))]
    for number, is_first in enumerate((True, False)):
        files = files_of_somebody(database, f"u{number}")
        told = [bring(files, format_, DIGITS)] if not is_first else []
        batch = Batch(id="saved", records=iter(saved))
        told.append(files.store(read_batch(batch, today=NOW.date())).new_transactions)
        assert [*told, bring(files, format_, DIGITS)][:2] == [len(DIGITS), 0]


@pytest.mark.parametrize("seed", seeds(16))
def test_windows_that_overlap_and_cut_days_are_one_ledger(database: OpenStore, seed: int) -> None:
    random = Random(seed)
    files, formats = files_of_somebody(database, "eva"), random.sample(list(FORMATS), 4)
    for format_ in formats:
        first = random.randrange(20)
        bring(files, format_, LEDGER[first : random.randrange(first + 3, 27)], first=first)
    bring(files, formats[0], LEDGER)
    assert money(files) == MONEY


@pytest.mark.parametrize("formats", [("CSV cut at 27", "MT940", "OFX"), ("camt.053.001.08", "DKB", "CSV in capitals")])
def test_of_two_twins_noon_tells_one_and_the_evening_both(database: OpenStore, formats: Sequence[str]) -> None:
    twins = [row for row in LEDGER if row.day == date(2026, 10, 19)]
    files = files_of_somebody(database, "eva")
    noon, evening, again = formats
    assert [bring(files, noon, twins[:1]), bring(files, evening, twins), bring(files, again, twins[:1])] == [1, 1, 0]


@pytest.mark.parametrize("formats", [("DKB", "Sparkasse"), ("OFX", "OFX"), ("CSV cut at 27", "CSV in capitals")])
def test_exports_of_two_searches_that_agree_in_day_and_amount_alone_are_all_kept(
    database: OpenStore, formats: tuple[str, str]
) -> None:
    one = rows("2026-10-05 | -20.00 | Edeka | Einkauf 11\n2026-10-06 | -7.50 | Kino | Karte 1")
    other = rows("2026-10-05 | -20.00 | Rewe | Rechnung 1\n2026-10-06 | -7.50 | Zoo | Karte 12")
    files = files_of_somebody(database, "eva")
    assert [bring(files, formats[0], one), bring(files, formats[1], other)] == [2, 2]


def test_the_fuller_words_hold_in_whichever_order_they_come_and_no_cut_ones_shorten_them(database: OpenStore) -> None:
    words = []
    for number, order in enumerate([("CSV cut at 27", "camt.053.001.08"), ("camt.053.001.08", "CSV cut at 27")]):
        files = files_of_somebody(database, f"u{number}")
        for format_ in order:
            bring(files, format_, LEDGER)
        columns = "booking_date, amount, id, counterpart_name, purpose, value_date, mandate_reference, counterpart_iban"
        words.append(sorted(str([row[name] for name in row if name != "id"]) for row in files.rows(columns)))
    assert words[0] == words[1]
    assert "Miete Oktober 2026 Wohnung 12 Kastanienallee 5 links" in words[0][0]
