"""Bookings are read in pieces: how large these are shows in no answer."""

import polars as pl
import pytest

from storage import transactions
from storage.database import Database
from storage.transactions import Selection
from tests.storage.conftest import Bank, bookings

FOUR = "".join(f"2026-11-0{day} | -{day}.00 | A | {day}\n" for day in (1, 2, 2, 4))


@pytest.mark.requirement("export.whole")
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_an_account_is_read_whole_whatever_the_size_of_a_piece(
    size: int, bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank.bring(bookings(FOUR))
    (account,) = {row["account_id"] for row in bank.rows("account_id, booking_date, amount, id")}
    whole = [row["id"] for row in bank.database.rows("SELECT id FROM transactions ORDER BY booking_date, id")]
    monkeypatch.setattr("storage.transactions.ROWS_AT_ONCE", size)
    pieces = list(transactions.pieces(bank.database, bank.user.id, account, Selection()))
    assert [id_ for piece in pieces for id_ in piece["id"]] == whole
    assert all(not piece.is_empty() for piece in pieces)


@pytest.mark.requirement("decision 1")
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_the_list_is_in_its_order_however_many_bookings_are_sorted_at_once(
    size: int, bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = ("09-30", "10-01", "10-01", "11-04", "11-05")
    bank.bring(bookings("".join(f"2026-{day} | -{number}.00 | A | x\n" for number, day in enumerate(days, 1))))
    whole = [row["id"] for row in bank.database.rows("SELECT id FROM transactions ORDER BY booking_date DESC, id DESC")]
    monkeypatch.setattr("storage.transactions.LISTED_AT_ONCE", size)
    columns = {"id": pl.String(), "booking_date": pl.Date()}
    rows = transactions.newest_first(bank.database, bank.user.id, columns, number=len(days))
    assert rows["id"].to_list() == whole


@pytest.mark.requirement("store.constraints")
def test_a_frame_can_be_appended_outside_a_transaction_too(database: Database) -> None:
    database.append("settings", pl.DataFrame({"name": ["a", "b"], "value": ["1", "2"]}))
    database.append("settings", pl.DataFrame({"name": [], "value": []}, schema={"name": pl.String, "value": pl.String}))
    assert database.rows("SELECT count(*) AS n FROM settings") == [{"n": 2}]


@pytest.mark.requirement("words.rules")
@pytest.mark.parametrize("size", [1, 2, 9])
def test_of_many_bookings_the_newest_are_read_alone(size: int, bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.transactions.PORTION_ROWS", size)
    told = "2026-11-02 | -1.00 | Anna\n2026-11-04 | -2.00 | Ben\n2026-11-03 | -3.00 | Cem\n2026-11-05 | -4.00 | Dora"
    bank.bring(bookings(told))
    ids = {row["counterpart_name"]: row["id"] for row in bank.database.rows("SELECT * FROM transactions")}
    asked = [ids[name] for name in ("Anna", "Ben", "Cem")]
    rows = transactions.rows_by_id(bank.database, bank.user.id, asked, limit=2)
    assert [(row["counterpart_name"], row["amount"]) for row in rows.values()] == [("Ben", -2), ("Cem", -3)]
