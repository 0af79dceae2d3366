"""A file may write whatever it likes into its references and ids: no booking of it is hidden behind another one."""

import pytest
from msgspec.structs import replace

from analytics.records import AccountRecord, StatementRecord
from storage import accounts
from tests.storage.conftest import Bank, bookings, files_of

STORED = "2026-11-02 | -5.00 | Shop | x"
STRANGE = "2026-11-09 | -900.00 | Thief | y"


@pytest.fixture
def files(bank: Bank) -> Bank:
    """The statement files of eva."""
    return files_of(bank)


@pytest.mark.requirement("import.weak-references")
@pytest.mark.parametrize("strange", [STRANGE, "2026-11-02 | -900.00 | Shop | x", "2026-11-09 | -5.00 | Shop | x"])
def test_an_id_of_ours_in_a_reference_is_no_other_booking(files: Bank, strange: str) -> None:
    files.bring(bookings(STORED))
    (id_,) = files.ids()
    named = f"{strange} | references=txid:{id_.replace('_', '')}"
    assert files.bring(bookings(named)).new_transactions == 1
    assert files.bring(bookings(named)).new_transactions == 0
    assert len(files.ids()) == 2


@pytest.mark.requirement("import.weak-references")
def test_an_id_of_ours_in_another_currency_is_another_booking(files: Bank) -> None:
    files.bring(bookings(STORED))
    (id_,) = files.ids()
    assert files.bring(bookings(f"{STORED} | currency=USD; references=txid:{id_}")).new_transactions == 1


@pytest.mark.requirement("import.weak-references")
def test_an_id_of_a_bank_in_a_file_neither_hides_nor_changes_a_booking(bank: Bank, files: Bank) -> None:
    bank.bring(bookings(f"{STORED} | provider_id=p1"))
    before = bank.ids()
    report = files.bring(bookings(f"{STRANGE} | provider_id=p1"))
    assert (report.new_transactions, report.changes["change"].to_list()) == (1, ["added"])
    assert before < bank.ids()


@pytest.mark.requirement("import.weak-references")
def test_an_id_that_a_file_uses_again_is_another_booking_and_both_stay(files: Bank) -> None:
    first, second = bookings(f"{STORED} | provider_id=1"), bookings(f"{STRANGE} | provider_id=1")
    assert files.bring(first).new_transactions == 1
    assert files.bring(second).new_transactions == 1
    assert files.bring([*second, *first]).new_transactions == 0
    far_away = bookings("2025-01-09 | -1.00 | A | b | provider_id=1")
    assert files.bring(far_away).new_transactions == 1
    assert len(files.ids()) == len(files.rows()) == 3


@pytest.mark.requirement("import.weak-references")
def test_a_reference_in_another_currency_is_another_booking(files: Bank) -> None:
    files.bring(bookings(f"{STORED} | references=servicer:7"))
    assert files.bring(bookings(f"{STORED} | currency=USD; references=servicer:7")).new_transactions == 1


@pytest.mark.requirement("import.weak-references")
def test_money_in_and_money_out_are_no_details_of_a_smaller_whole(files: Bank) -> None:
    files.bring(bookings("2026-11-02 | -11.00 | | Sammler | references=servicer:7"))
    details = """
        2026-11-02 | 900.00 | A | x | references=servicer:7/0
        2026-11-02 | -911.00 | B | y | references=servicer:7/1
    """
    assert files.bring(bookings(details)).new_transactions == 2


@pytest.mark.requirement("import.weak-references")
def test_a_whole_is_not_made_of_stored_money_in_and_money_out(files: Bank) -> None:
    files.bring(
        bookings("""
        2026-11-02 | 900.00 | A | x | references=servicer:7/0
        2026-11-02 | -911.00 | B | y | references=servicer:7/1
    """)
    )
    assert files.bring(bookings("2026-11-02 | -11.00 | | Sammler | references=servicer:7")).new_transactions == 1


@pytest.mark.requirement("import.weak-references")
@pytest.mark.parametrize(("strange", "count"), [(STRANGE, 2), (STORED, 1)])
def test_an_id_of_ours_opens_no_account_to_a_file_without_one(files: Bank, strange: str, count: int) -> None:
    nameless = AccountRecord(stable_key="unnamed", currency="EUR")
    files.bring(bookings(STORED), account=nameless, statement=StatementRecord(closing=bookings(STORED)[0].amount))
    (id_,) = files.ids()
    other = replace(nameless, stable_key="other")
    files.bring(bookings(f"{strange} | references=txid:{id_}"), account=other)
    assert len(accounts.of_user(files.database, files.user.id)) == count
