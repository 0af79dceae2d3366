"""One account is one ledger, whatever formats tell it, in whichever order, in whole or in part."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from itertools import combinations
from random import Random

import pytest

from analytics.records import AccountRecord, Batch
from storage.importing.batches import read_batch
from tests.conftest import NOW
from tests.engines import OpenStore
from tests.imports.formats_of_one_account import FORMATS, OPENING, Row, records_in, rows
from tests.storage.conftest import GIRO, Bank, files_of, make_bank

pytestmark = pytest.mark.requirement("import.formats")
LEDGER = rows()
MONEY = sorted((row.day, row.amount) for row in LEDGER)


def files_of_somebody(database: OpenStore, name: str) -> Bank:
    return files_of(make_bank(database, NOW, name))


def bring(files: Bank, format_: str, told: Sequence[Row], *, first: int = 0) -> int:
    """How many bookings are new; `first` is the place in the ledger of the first row that is told."""
    opening = OPENING + sum((row.amount for row in LEDGER[:first]), Decimal(0))
    of_giro = (GIRO if isinstance(each, AccountRecord) else each for each in records_in(format_, told, opening))
    files.count += 1
    return files.store(read_batch(Batch(id=f"b{files.count}", records=of_giro), today=NOW.date())).new_transactions


def money(files: Bank) -> list[tuple[date, Decimal]]:
    return sorted((row["booking_date"], row["amount"]) for row in files.rows())


@pytest.mark.parametrize(("one", "other"), [*combinations(FORMATS, 2)])
def test_two_formats_tell_one_ledger_in_either_order_under_the_first_ids(
    database: OpenStore, one: str, other: str
) -> None:
    for first, second in ((one, other), (other, one)):
        files = files_of_somebody(database, first)
        assert bring(files, first, LEDGER) == len(LEDGER)
        before = files.ids()
        assert [bring(files, second, LEDGER), bring(files, first, LEDGER)] == [0, 0]
        assert (files.ids(), money(files)) == (before, MONEY)


@pytest.mark.parametrize("seed", range(12))
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
