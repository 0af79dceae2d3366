"""An import that is held, derived, written and flagged in pieces is the same as in one."""

import gc
import weakref
from collections.abc import Callable
from datetime import date
from decimal import Decimal

import polars as pl
import pytest

from analytics.records import TransactionRecord
from storage.database import Database
from storage.importing import contributions, duplicate_flags, spool
from storage.importing.spool import Spool
from tests.storage.conftest import Bank, bookings

TOLD = bookings("""
    2026-11-02 | -2.80 | Cafe   | Kaffee  | references=s:1
    2026-11-02 | -2.80 | Cafe   | Kaffee  | references=s:2
    2026-11-03 | -5.00 | Kiosk  | Zeitung
    2026-11-09 | -7.00 | Kiosk  | Buch    | provider_id=p1
    2026-11-09 | -9.00 | Markt  | Brot
""")
TOLD_ELSEWHERE = bookings("""
    2026-11-03 | -2.80 | Cafe  | Karte 1  | provider_id=q1
    2026-11-04 | -2.80 | Cafe  | Karte 2  | provider_id=q2
    2026-11-05 | -5.00 | Kiosk | Karte 3  | provider_id=q3
    2026-11-20 | -7.00 | Kiosk | Karte 4  | provider_id=q4
    2026-11-10 | -9.00 | Markt | Karte 5  | provider_id=q5
""")
COLUMNS = "booking_date, amount, purpose, identity, is_potential_duplicate, type, category"


@pytest.mark.requirement("import.any-order")
@pytest.mark.parametrize("at_once", [1, 2, 3, 5])
@pytest.mark.sampled
def test_an_import_in_pieces_is_that_in_one(
    new_bank: Callable[..., Bank], monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    def stored(user: str) -> list[tuple[object, ...]]:
        bank = new_bank(user)
        assert bank.bring(TOLD).new_transactions == 5
        assert bank.bring(TOLD_ELSEWHERE).new_transactions == 5
        assert bank.bring(TOLD).new_transactions == 0
        return sorted((tuple(row.values()) for row in bank.rows(COLUMNS)), key=str)

    whole = stored("eva")
    assert {row[2] for row in whole if row[4]} == {"Karte 1", "Karte 2", "Karte 3", "Karte 5"}
    for module in (spool, contributions, duplicate_flags):
        monkeypatch.setattr(module, "CHUNK_ROWS", at_once)
    assert stored("ida") == whole


@pytest.mark.requirement("decision 82")
def test_a_row_has_what_its_booking_said_letter_by_letter(new_bank: Callable[..., Bank]) -> None:
    bank = new_bank("eva")
    spoken = TransactionRecord(
        amount=Decimal("1E+3"),
        currency="EUR",
        booking_date=date(2026, 11, 2),
        value_date=date(2026, 11, 4),
        references=('servicer:"a\\b"', "txid:ü\n1"),
        purpose='Rechnung "4711"\nZeile\\2 🙂',
        original_amount=Decimal("1234.56789"),
        original_currency="CHF",
        merchant_name="Café",
        is_return=True,
    )
    silent = TransactionRecord(amount=Decimal("-0.50"), currency="EUR", booking_date=date(2026, 11, 3))
    assert bank.bring([spoken, silent]).new_transactions == 2
    columns = (
        "booking_date, value_date, amount, reference_keys, purpose, original_amount, source_merchant_name, is_reversal,"
        " is_return"
    )
    assert sorted(tuple(row.values()) for row in bank.rows(columns)) == [
        (
            date(2026, 11, 2),
            date(2026, 11, 4),
            Decimal(1000),
            r'["servicer:\"a\\b\"","txid:ü\n1"]',
            'Rechnung "4711"\nZeile\\2 🙂',
            Decimal("1234.56789"),
            "Café",
            False,
            True,
        ),
        (date(2026, 11, 3), None, Decimal("-0.50"), "[]", None, None, None, False, False),
    ]


@pytest.mark.requirement("import.any-order")
def test_a_spool_gives_back_what_it_was_given_in_the_order_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "CHUNK_ROWS", 2)
    kept = Spool()
    for record in TOLD:
        kept.add(record)
    assert len(kept) == 5
    assert kept.records([4, 0, 3]) == [TOLD[4], TOLD[0], TOLD[3]]
    assert kept.keys([range(3, 5), range(1)])["place"].to_list() == [3, 4, 0]


@pytest.mark.requirement("decision 82")
def test_rows_handed_to_the_engine_are_let_go_before_the_transaction_ends(database: Database) -> None:
    frame = pl.DataFrame({"number": [7]})
    kept = weakref.ref(frame)
    with database.transaction() as session:
        with session.stage("handed", frame):
            assert session.rows("SELECT number FROM handed") == [{"number": 7}]
        del frame
        gc.collect()
        assert kept() is None
