"""Whether a new account is one that is there already: asked once, counted once until it is answered (live banks 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from analytics.records import AccountRecord
from storage import accounts, integrity
from storage.accounts import StoredAccount
from storage.importing import same_accounts
from storage.importing.same_accounts import bookings_in_both
from storage.undo_and_merge import merges, rebuild
from tests.storage.conftest import GIRO, Bank, NewBank, bookings, files_of

NUMBER = AccountRecord(stable_key="1", currency="EUR", name="Live")
THREE = "2026-11-02 | -5.00 | A | a\n2026-11-03 | -6.00 | B | b\n2026-11-05 | -7.00 | C | c"
DAY = date(2026, 11, 10)


def every(bank: Bank) -> dict[str | None, StoredAccount]:
    return {each.name: each for each in accounts.every(bank.database, bank.user.id)}


def shown(bank: Bank) -> list[str | None]:
    return [each.name for each in accounts.of_user(bank.database, bank.user.id)]


def show(bank: Bank, account: StoredAccount) -> None:
    what = {"user_id": bank.user.id, "account_id": account.id}
    bank.database.atomically(lambda session: same_accounts.hide(session, **what, is_hidden=False, now=bank.now))


def merge(bank: Bank, source: StoredAccount, target: StoredAccount) -> None:
    bank.database.atomically(
        lambda session: merges.merge(session, user=bank.user, source_id=source.id, target_id=target.id, now=bank.now)
    )


def dates(*days: int) -> Sequence[date]:
    return [DAY + timedelta(days=each) for each in days]


def dated(days: Mapping[str, Sequence[int]]) -> Mapping[Decimal, Sequence[date]]:
    """The dates of each amount, from days after DAY by a letter."""
    return {Decimal(ord(name)): dates(*each) for name, each in days.items()}


ALIKE = {"a": [0], "b": [1], "c": [2]}


@pytest.mark.requirement("accounts.overlap")
@pytest.mark.parametrize(
    ("one", "other", "in_both"),
    [
        (ALIKE, ALIKE, 3),
        (ALIKE, {"a": [2], "b": [3], "c": [4]}, 3),
        (ALIKE, {"a": [3], "b": [1], "c": [2]}, 0),  # three days apart
        ({"a": [0, 5], "b": [1, 6]}, {"a": [0, 5], "b": [1, 6]}, 0),  # two standing orders
        ({**ALIKE, "x": [1]}, {**ALIKE, "y": [1]}, 3),
        ({**ALIKE, "x": [1, 1]}, {**ALIKE, "y": [1, 1]}, 0),  # three of five
        ({**ALIKE, "x": [-9, -8, 9]}, ALIKE, 3),  # of days that only one of them knows
        ({**ALIKE, "a": [0, 0]}, ALIKE, 3),  # one of two on a day is one
        (ALIKE, {**ALIKE, "a": [-9, 0]}, 3),
        ({}, ALIKE, 0),
        (ALIKE, {}, 0),
    ],
)
def test_two_thirds_of_the_shared_days_and_three_amounts_have_to_agree(
    one: Mapping[str, Sequence[int]], other: Mapping[str, Sequence[int]], in_both: int
) -> None:
    assert bookings_in_both(dated(one), dated(other)) == in_both


@pytest.mark.no_cover
@given(*(st.lists(st.integers(0, 9), min_size=1, max_size=5) for _ in range(2)))
def test_dates_are_paired_as_often_as_they_can_be(one: list[int], other: list[int]) -> None:
    few, many = sorted((sorted(one), sorted(other)), key=len)
    best = max(sum(abs(a - b) <= 2 for a, b in zip(few, each, strict=False)) for each in permutations(many))
    alike = {Decimal(1000 + n): dates(0, 9) for n in range(20)}  # enough agrees, whatever becomes of these dates
    told = [{**alike, Decimal(1): dates(*sorted(each))} for each in (one, other)]
    assert bookings_in_both(told[0], told[1]) == best + 40


@pytest.fixture
def files(bank: Bank) -> Bank:
    """The bank's user after a statement of their account has come as a file."""
    files = files_of(bank)
    files.bring(bookings(THREE))
    return files


@pytest.mark.requirement("accounts.overlap")
@pytest.mark.long
def test_an_account_whose_bookings_are_there_is_asked_about_and_counted_once(files: Bank, bank: Bank) -> None:
    before = files.ids()
    report = bank.bring(bookings(THREE), account=NUMBER)
    giro, live = every(bank)["Giro"], every(bank)["Live"]
    (of_batch,) = report.accounts
    assert of_batch.same_as is not None
    assert (of_batch.same_as.account.id, of_batch.same_as.in_both) == (giro.id, 3)
    assert (giro.same_as, live.same_as, shown(bank)) == (None, giro.id, ["Giro"])
    bank.bring(bookings(THREE), account=NUMBER)  # the next sync changes nothing of it
    assert every(bank)["Live"].same_as == giro.id
    merge(bank, live, giro)
    assert (shown(bank), files.ids()) == (["Giro"], before)
    bank.database.atomically(lambda session: merges.separate(session, user=bank.user, source_id=live.id, now=bank.now))
    assert (every(bank)["Live"].same_as, shown(bank)) == (giro.id, ["Giro"])
    show(bank, live)
    bank.bring(bookings(THREE), account=NUMBER)
    assert (every(bank)["Live"].same_as, shown(bank)) == (None, ["Giro", "Live"])


@pytest.mark.requirement("accounts.overlap")
def test_a_file_of_an_account_that_came_without_iban_is_asked_about_too(bank: Bank) -> None:
    bank.bring(bookings(THREE), account=NUMBER)
    files_of(bank).bring(bookings(THREE))
    assert every(bank)["Giro"].same_as == every(bank)["Live"].id


@pytest.mark.requirement("accounts.overlap")
def test_accounts_of_two_types_are_not_asked_about(bank: Bank) -> None:
    files_of(bank).bring(bookings(THREE), account=structs.replace(GIRO, kind="checking"))
    bank.bring(bookings(THREE), account=AccountRecord(stable_key="1", currency="EUR", name="Live", kind="credit_card"))
    assert shown(bank) == ["Giro", "Live"]


@pytest.mark.requirement("accounts.overlap")
def test_accounts_that_one_bank_or_one_file_tells_apart_are_not_asked_about(bank: Bank) -> None:
    bank.bring(bookings(THREE), account=NUMBER)
    bank.bring(bookings(THREE), account=AccountRecord(stable_key="2", currency="EUR", name="Second"))
    assert shown(bank) == ["Live", "Second"]


@pytest.mark.requirement("accounts.overlap")
def test_an_account_is_new_for_thirty_days(files: Bank, bank: Bank) -> None:
    bank.bring(bookings("2026-11-02 | -5.00 | A | a"), account=NUMBER)
    later = replace(bank, now=bank.now + timedelta(days=30), count=50)
    later.bring(bookings(THREE), account=NUMBER)
    assert shown(bank) == ["Giro", "Live"]
    later = replace(later, now=later.now - timedelta(seconds=1))
    later.bring(bookings(THREE), account=NUMBER)
    assert shown(bank) == ["Giro"]
    assert files.user == bank.user


@pytest.mark.requirement("accounts.overlap")
def test_a_hidden_account_is_no_legs_place_until_it_is_shown(new_bank: NewBank, bank: Bank) -> None:
    savings = AccountRecord(stable_key="s", currency="EUR", name="Savings")
    files_of(bank).bring(bookings(THREE + "\n2026-11-06 | -50.00 | |"))
    new_bank("eva", "Other").bring(bookings("2026-11-06 | 50.00 | |"), account=savings)
    legs = {row["transfer_id"] for row in bank.rows("transfer_id, booking_date, amount, id")} - {None}
    assert len(legs) == 2
    paired = {row["id"] for row in bank.rows("transfer_id, booking_date, amount, id") if row["transfer_id"]}
    bank.bring(bookings(THREE + "\n2026-11-06 | -50.00 | |"), account=NUMBER)
    assert {row["transfer_id"] for row in bank.rows("transfer_id, booking_date, amount, id")} - {None} == legs
    show(bank, every(bank)["Live"])  # of two that may be it none is
    assert {row["transfer_id"] for row in bank.rows("transfer_id, booking_date, amount, id")} == {None}
    told = bank.database.rows("SELECT transaction_id, change FROM journal WHERE job_id = 'hide'")
    assert {(row["transaction_id"], row["change"]) for row in told} == {(id_, "modified") for id_ in paired}


@pytest.mark.requirement("accounts.overlap")
def test_an_account_is_shown_when_the_one_that_it_may_be_is_gone(files: Bank, bank: Bank) -> None:
    bank.bring(bookings(THREE), account=NUMBER)
    giro = every(files)["Giro"]
    bank.database.atomically(lambda session: rebuild.delete(session, user=bank.user, account_id=giro.id, now=bank.now))
    assert (shown(bank), every(bank)["Live"].perhaps_same_as) == (["Live"], None)


@pytest.mark.requirement("accounts.overlap")
@pytest.mark.long
def test_the_question_follows_an_account_that_is_merged_and_ends_where_the_two_are_one(
    files: Bank, bank: Bank, new_bank: NewBank
) -> None:
    bank.bring(bookings(THREE), account=NUMBER)
    third = AccountRecord(stable_key="3", currency="EUR", name="Third")
    new_bank("eva", "Other").bring(bookings("2026-01-05 | -1.00 | |"), account=third)
    merge(bank, every(files)["Giro"], every(bank)["Third"])
    assert every(bank)["Live"].same_as == every(bank)["Third"].id
    merge(bank, every(bank)["Third"], every(bank)["Live"])
    assert (shown(bank), every(bank)["Live"].perhaps_same_as) == (["Live"], None)


FOUR = f"{THREE}\n2026-11-09 | -8.00 | D | d"


def listed(bank: Bank) -> list[tuple[str | None, Decimal]]:
    """The bookings that count: account and amount."""
    names = {each.id: each.name for each in accounts.of_user(bank.database, bank.user.id)}
    rows = bank.rows("account_id, amount, booking_date, id")
    return sorted((names[row["account_id"]], row["amount"]) for row in rows if row["account_id"] in names)


OF_THREE = [("Giro", Decimal(-7)), ("Giro", Decimal(-6)), ("Giro", Decimal(-5))]


@pytest.mark.requirement("accounts.overlap")
@pytest.mark.parametrize("answer", ["same", "another"])
def test_what_only_the_account_in_question_has_counts_once_until_it_is_answered(
    files: Bank, bank: Bank, answer: str
) -> None:
    report = bank.bring(bookings(FOUR), account=NUMBER)
    (eighth,) = [row["id"] for row in bank.rows("id, amount, booking_date") if row["amount"] == -8]
    assert report.new_transactions == 4
    assert listed(bank) == [("Giro", Decimal(-8)), *OF_THREE]
    shown_ids = [each.id for each in accounts.of_user(bank.database, bank.user.id)]
    proven = integrity.evidence(bank.database, bank.user.id, shown_ids).moved
    assert sorted(proven.filter(account_id=every(bank)["Giro"].id)["amount"]) == [-7, -6, -5]
    assert bank.bring(bookings(FOUR), account=NUMBER).new_transactions == 0
    bank.bring(bookings(f"{FOUR}\n2026-11-10 | -9.00 | E | e"), account=NUMBER)
    assert listed(bank) == [("Giro", Decimal(-9)), ("Giro", Decimal(-8)), *OF_THREE]
    assert files.bring(bookings("2026-11-09 | -8.00 | D | d")).new_transactions == 1
    assert listed(bank) == [("Giro", Decimal(-9)), ("Giro", Decimal(-8)), *OF_THREE]
    giro, live = every(bank)["Giro"], every(bank)["Live"]
    if answer == "same":
        merge(bank, live, giro)
        assert listed(bank) == [("Giro", Decimal(-9)), ("Giro", Decimal(-8)), *OF_THREE]
    else:
        show(bank, live)
        both = [(name, Decimal(-each)) for name in ("Giro", "Live") for each in (9, 8, 7, 6, 5)]
        assert listed(bank) == [each for each in both if each != ("Giro", Decimal(-9))]
        assert eighth in bank.ids()


@pytest.mark.requirement("accounts.overlap")
def test_a_rebuilt_account_goes_on_to_hold_what_only_the_one_in_question_has(files: Bank, bank: Bank) -> None:
    bank.bring(bookings(FOUR), account=NUMBER)
    giro, live = every(bank)["Giro"], every(bank)["Live"]
    for account in (giro, live):
        bank.database.atomically(
            lambda session, id_=account.id: rebuild.rebuild(  # type: ignore[misc]
                session, user=bank.user, account_ids={id_}, job_id="again", now=bank.now
            )
        )
        assert listed(bank) == [("Giro", Decimal(-8)), *OF_THREE]
    bank.database.atomically(lambda session: rebuild.delete(session, user=bank.user, account_id=giro.id, now=bank.now))
    assert [name for name, _ in listed(bank)] == ["Live"] * 4


@pytest.mark.requirement("accounts.overlap")
def test_clients_that_keep_copies_see_a_held_booking_come_and_go_with_the_account_that_holds_it(
    files: Bank, bank: Bank
) -> None:
    bank.bring(bookings(FOUR), account=NUMBER)
    removed = "SELECT account_id FROM removed WHERE user_id = $1"
    giro = every(bank)["Giro"]
    (held,) = [row for row in bank.rows("id, amount, booking_date, account_id, added_state") if row["amount"] == -8]
    assert held["account_id"] == giro.id
    files.bring(bookings("2026-11-09 | -8.00 | D | d"))
    assert [row["account_id"] for row in bank.database.rows(removed, bank.user.id)] == [giro.id]
