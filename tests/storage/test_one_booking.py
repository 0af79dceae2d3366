"""What counts as one booking, in plain Python: two tellings of one account, merged slowly, and by the product.

The rules are those of decision 17, for tellings without ids and references: by them nothing else is compared. Where two
pairs are equally likely, either may be taken, so the reference has every ledger that can come of it.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from itertools import count, product
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.records import TransactionRecord
from tests.conftest import NOW, empty_store, examples
from tests.engines import OpenStore
from tests.storage.conftest import files_of, make_bank

USERS = count()
FOLDED = str.maketrans({"ä": "a", "ö": "o", "ü": "u", ".": " ", "-": " "})


class Said(NamedTuple):
    """What one row of a telling says."""

    booking_date: date
    amount: Decimal
    counterpart_name: str | None
    purpose: str | None
    value_date: date | None


Ledger = tuple[Said, ...]


def words(text: str | None) -> list[str]:
    plain = (text or "").lower().translate(FOLDED).replace("é", "e")
    return plain.replace("ae", "a").replace("oe", "o").replace("ue", "u").split()


def folded(text: str | None) -> str:
    return "".join(words(text))


def are_words(one: str | None, other: str | None) -> bool:
    short, long = sorted((f" {' '.join(words(text))} " for text in (one, other)), key=len)
    return short in long


def agreement(one: str | None, other: str | None) -> int:
    """1 where one text is the other, begins it or stands in it, 0 where one is missing, else -1."""
    short, long = sorted((folded(one), folded(other)), key=len)
    if not short or short == long:
        return int(bool(short))
    is_part = (long.startswith(short) and len(short) >= 4) or (short in long and len(short) >= 6)
    return 1 if is_part or (are_words(one, other) and len(short) >= 3) else -1


def joined(row: Said) -> str:
    return f"{row.counterpart_name or ''} {row.purpose or ''}"


def likelihood(told: Said, stored: Said, *, is_other_source: bool) -> int | None:
    """How much speaks for one booking; None where it cannot be one."""
    if (told.booking_date, told.amount) != (stored.booking_date, stored.amount):
        return None
    name, purpose = agreement(told.counterpart_name, stored.counterpart_name), agreement(told.purpose, stored.purpose)
    if purpose == -1 and name == 0:
        purpose = agreement(joined(told), joined(stored))
        for named, other in ((told, stored), (stored, told)):
            if named.counterpart_name and not other.counterpart_name and {*words(joined(named))} <= {*words(other[3])}:
                purpose = 1
    if purpose == -1 and name == 1:
        short, long = sorted((folded(told.purpose), folded(stored.purpose)), key=len)
        purpose = 0 if (short in long and len(short) >= 4) or are_words(told.purpose, stored.purpose) else -1
    if purpose == -1 and not (is_other_source and name == 1):
        return None
    if name == -1 and not (is_other_source and purpose == 1):
        return None
    equal = [
        bool(a) and bool(b) and (1 if a == b else -1)
        for a, b in zip(map(folded, told[2:4]), map(folded, stored[2:4]), strict=True)
    ]
    score = 3 * (name + purpose) + sum(equal)
    if told.value_date and stored.value_date:
        score += 1 if told.value_date == stored.value_date else -1
    return score


def content(row: Said) -> Said:
    name, purpose = ("".join((text or "").lower().split()) for text in (row.counterpart_name, row.purpose))
    return row._replace(counterpart_name=name, purpose=purpose)


def fuller(stored: Said, told: Said) -> Said:
    """The row after it was told again: of each text the fuller one."""
    texts = [
        new if not old or (new and len(folded(new)) > len(folded(old)) and agreement(new, old) == 1) else old
        for old, new in ((stored.counterpart_name, told.counterpart_name), (stored.purpose, told.purpose))
    ]
    return stored._replace(counterpart_name=texts[0], purpose=texts[1], value_date=stored.value_date or told.value_date)


def ledgers(stored: Sequence[Said], told: Sequence[Said], *, is_other_source: bool) -> set[Ledger]:
    """Every ledger that these rows and this telling may become."""
    known, left, rows = [], [], list(stored)
    for each in told:  # the whole content first, counted
        same = next((row for row in rows if content(row) == content(each)), None)
        if same is None:
            left.append(each)
        else:
            rows.remove(same)
            known.append(same)
    return {in_order((*known, *rest)) for rest in _likeliest_first(rows, left, is_other_source=is_other_source)}


def in_order(rows: Iterable[Said]) -> Ledger:
    return tuple(sorted(rows, key=lambda row: (row.booking_date, row.amount, *map(str, row[2:]))))


def _likeliest_first(rows: list[Said], told: list[Said], *, is_other_source: bool) -> Iterator[Ledger]:
    scored = [
        (score, row, each)
        for row, each in product(rows, told)
        if (score := likelihood(each, row, is_other_source=is_other_source)) is not None
    ]
    if not scored:
        yield (*rows, *told)
        return
    best = max(score for score, _, _ in scored)
    for row, each in {(row, each) for score, row, each in scored if score == best}:
        others, unsaid = rows.copy(), told.copy()
        others.remove(row)
        unsaid.remove(each)
        for rest in _likeliest_first(others, unsaid, is_other_source=is_other_source):
            yield (fuller(row, each), *rest)


ROWS = st.builds(
    Said,
    booking_date=st.sampled_from([date(2026, 11, 2), date(2026, 11, 3)]),
    amount=st.sampled_from([Decimal(-5), Decimal(-7)]),
    counterpart_name=st.sampled_from([None, "Möbel Müller", "MOEBEL MUELLER", "Möbel", "Café Blau", "Blau"]),
    purpose=st.sampled_from(
        [None, "Rechnung vom Montag", "RECHNUNG VOM", "Kaffee", "Kaffee und Kuchen", "Miete", "Blau Miete", "Kaltmiete"]
    ),
    value_date=st.sampled_from([None, None, date(2026, 11, 4), date(2026, 11, 5)]),
)


def as_told(rows: Iterable[Said]) -> list[TransactionRecord]:
    return [TransactionRecord(currency="EUR", **row._asdict()) for row in rows]


@pytest.fixture(scope="module")
def one_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStore]:
    """A store for all examples, each with a user of its own."""
    database = empty_store(tmp_path_factory.mktemp("one booking") / "store.duckdb")
    yield database
    database.close()


@pytest.mark.requirement("import.evidence")
@settings(max_examples=examples(40))
@given(first=st.lists(ROWS, max_size=5), then=st.lists(ROWS, max_size=5), is_live=st.booleans())
def test_two_tellings_become_one_ledger_as_the_rules_say(
    one_store: OpenStore, first: list[Said], then: list[Said], is_live: bool
) -> None:
    bank = make_bank(one_store, NOW, f"eva{next(USERS)}")
    files = files_of(bank)
    (bank if is_live else files).bring(as_told(first))
    files.bring(as_told(then))
    rows = bank.rows(f"{', '.join(Said._fields)}, id")
    ledger = in_order(Said(**{name: row[name] for name in Said._fields}) for row in rows)
    assert ledger in ledgers(first, then, is_other_source=is_live)
