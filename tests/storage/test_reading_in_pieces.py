"""Bookings are read in pieces and pages: how large these are shows in no answer."""

from dataclasses import replace

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


@pytest.mark.requirement("interface 4.3 paging")
@pytest.mark.parametrize("one_scan", [0, 3, 4])
def test_a_page_is_the_same_whether_it_takes_one_scan_or_two(
    one_scan: int, bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank.bring(bookings(FOUR))
    monkeypatch.setattr(bank.database, "dialect", replace(bank.database.dialect, one_scan_rows_max=one_scan))
    pages = [
        transactions.page(bank.database, bank.user.id, Selection(), limit=3, offset=offset, total=4)
        for offset in (0, 3)
    ]
    assert [[row["booking_date"].day for row in page] for page in pages] == [[4, 2, 2], [1]]


@pytest.mark.requirement("store.constraints")
def test_a_frame_can_be_appended_outside_a_transaction_too(database: Database) -> None:
    database.append("settings", pl.DataFrame({"name": ["a", "b"], "value": ["1", "2"]}))
    database.append("settings", pl.DataFrame({"name": [], "value": []}, schema={"name": pl.String, "value": pl.String}))
    assert database.rows("SELECT count(*) AS n FROM settings") == [{"n": 2}]
