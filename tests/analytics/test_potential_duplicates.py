"""Look-alikes of another batch."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics import potential_duplicates
from analytics.frames import LOOKALIKES
from analytics.potential_duplicates import potential_duplicate_ids
from tests.analytics import reference
from tests.analytics.ledgers import Row, days, frame, lookalikes

HEADER = "id | account_id | booking_date | amount | currency | counterpart_iban | counterpart_name | purpose | batch_id"
STORED = lookalikes(f"{HEADER}\n s | a | 2026-03-10 | -50 | EUR | DE02 | Müller GmbH | Rechnung 4711 Dank | old")


@pytest.mark.requirement("isPotentialDuplicate")
@pytest.mark.parametrize(
    ("row", "is_flagged"),
    [
        ("a | 2026-03-10 | -50    | EUR | DE02 |              |                         | new", True),
        ("a | 2026-03-10 | -50    | EUR |      | MUELLER-GMBH |                         | new", True),
        ("a | 2026-03-10 | -50    | EUR |      |              | RECHNUNG 4711DANK       | new", True),
        ("a | 2026-03-10 | -50    | EUR |      |              | SVWZ+Rechnung 4711 Dank | new", True),
        ("a | 2026-03-10 | -50    | EUR |      |              | Rechnung 4711           | new", True),  # 12 letters
        ("a | 2026-03-10 | -50    | EUR |      |              | Rechnung 471            | new", False),  # 11
        ("a | 2026-03-10 | -50    | EUR |      |              | Rechnung 4712 Dank      | new", False),
        ("a | 2026-03-10 | -50    | EUR |      |              |                         | new", False),
        ("a | 2026-03-07 | -50    | EUR | DE02 |              |                         | new", True),
        ("a | 2026-03-13 | -50    | EUR | DE02 |              |                         | new", True),
        ("a | 2026-03-06 | -50    | EUR | DE02 |              |                         | new", False),
        ("a | 2026-03-14 | -50    | EUR | DE02 |              |                         | new", False),
        ("b | 2026-03-10 | -50    | EUR | DE02 |              |                         | new", False),
        ("a | 2026-03-10 | 50     | EUR | DE02 |              |                         | new", False),
        ("a | 2026-03-10 | -50.01 | EUR | DE02 |              |                         | new", False),
        ("a | 2026-03-10 | -50    | USD | DE02 |              |                         | new", False),
        ("a | 2026-03-10 | -50    | EUR | DE02 |              |                         | old", False),
    ],
)
def test_a_look_alike_of_another_batch_is_flagged(row: str, *, is_flagged: bool) -> None:
    assert potential_duplicate_ids(lookalikes(f"{HEADER}\n n | {row}"), STORED) == ({"n"} if is_flagged else set())


@pytest.mark.requirement("isPotentialDuplicate")
def test_equal_rows_of_one_batch_are_real() -> None:
    twice = lookalikes(
        "account_id | booking_date | amount | counterpart_name | batch_id" + "\na|2026-03-10|-5|Inn|x" * 2
    )
    assert potential_duplicate_ids(twice, twice.clear()) == set()
    assert potential_duplicate_ids(twice, twice) == set()


@pytest.mark.requirement("isPotentialDuplicate")
def test_the_same_batch_by_another_connection_is_another_way() -> None:
    rows = lookalikes("""
        id | account_id | booking_date | amount | counterpart_name | batch_id | connection_id
        1  | a          | 2026-03-10   | -5     | Inn              | x        | file
        2  | a          | 2026-03-10   | -5     | Inn              | x        | bank
    """)
    assert potential_duplicate_ids(rows, rows.clear()) == {"2"}  # the later one only
    assert potential_duplicate_ids(rows[1:], rows) == {"2"}


def test_adjusting_entries_are_no_duplicates() -> None:
    rows = lookalikes("""
        id | account_id | booking_date | amount | purpose            | batch_id | is_adjusting_entry
        1  | a          | 2026-03-10   | -5     | Balance adjustment | x        | yes
        2  | a          | 2026-03-10   | -5     | Balance adjustment | y        |
    """)
    assert potential_duplicate_ids(rows[1:], rows[:1]) == set()
    assert potential_duplicate_ids(rows[:1], rows[1:]) == set()


@st.composite
def lookalike_rows(draw: st.DrawFn, *, prefix: str) -> list[Row]:
    """Many rows of few amounts on few days."""
    return [
        {
            "id": f"{prefix}{number}",
            "account_id": draw(st.sampled_from(["a", "a", "b"])),
            "booking_date": draw(days(date(2026, 3, 1), date(2026, 3, 8))),
            "amount": Decimal(draw(st.sampled_from([-5, -5, 5]))),
            "currency": "EUR",
            "counterpart_iban": draw(st.sampled_from([None, None, "DE01", "DE02"])),
            "counterpart_name": draw(st.sampled_from([None, "Müller", "MUELLER", "Inn", "-"])),
            "purpose": draw(st.sampled_from([None, "Rent", "rent", "Rechnung 4711", "RECHNUNG4711 Danke", "Rechnung"])),
            "is_adjusting_entry": draw(st.sampled_from([False, False, False, True])),
            "connection_id": draw(st.sampled_from(["file", "bank"])),
            "batch_id": draw(st.sampled_from(["x", "y"])),
        }
        for number in range(draw(st.integers(0, 8)))
    ]


@given(lookalike_rows(prefix="n"), lookalike_rows(prefix="s"))
@pytest.mark.requirement("isPotentialDuplicate")
def test_flags_agree_with_the_reference_however_they_are_sliced(new: list[Row], stored: list[Row]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(potential_duplicates, "PAIRED_AT_ONCE_MAX", 3)
        flagged = potential_duplicate_ids(frame(new, LOOKALIKES), frame(stored, LOOKALIKES))
    assert flagged == reference.lookalikes(new, stored)
