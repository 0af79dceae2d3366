"""What only an account in question has, in whatever order questions, files, merges and deletions come: it counts once,
and goes back to whose it is."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from itertools import count

import pytest

from analytics.records import AccountRecord, Batch, Record, StatementRecord
from storage import integrity
from storage.accounts import StoredAccount
from storage.annotations import annotations
from storage.annotations.annotation import Annotation
from storage.database import Row
from storage.importing import same_accounts
from storage.importing.batches import read_batch
from storage.importing.statements import BY_THE_PERSON
from storage.undo_and_merge import merges, rebuild
from tests.storage.conftest import GIRO, Bank, NewBank, bookings, files_of
from tests.storage.test_same_accounts import FOUR, every, listed, merge, show

pytestmark = pytest.mark.requirement("accounts.overlap")

THREE = "2026-11-02 | -5.00 | A | a\n2026-11-03 | -6.00 | B | b\n2026-11-05 | -7.00 | C | c"
OTHER_THREE = THREE.replace("-", "-1").replace("2026-111-1", "2026-11-")
SAVINGS = AccountRecord(stable_key="DE88100900001234567892", iban="DE88100900001234567892", currency="EUR", name="Tag")
LIVE = AccountRecord(stable_key="1", currency="EUR", name="Live")
SECOND = AccountRecord(stable_key="2", currency="EUR", name="Second")


@pytest.fixture
def another(new_bank: NewBank) -> Callable[[], Bank]:
    """Further banks of the person, whose batches have ids of their own."""
    banks = (replace(new_bank("eva", f"Bank {number}"), count=number * 1000) for number in count(2))
    return partial(next, banks)


def told(bank: Bank, *accounts_and_bookings: tuple[AccountRecord, str]) -> None:
    """One batch about several accounts."""
    bank.count += 1
    flat: list[Record] = []
    for account, table in accounts_and_bookings:
        flat += [account, *bookings(table)]
    bank.store(read_batch(Batch(id=f"several-{bank.count}", records=iter(flat)), today=bank.now.date()))


def separate(bank: Bank, account: StoredAccount) -> None:
    bank.database.atomically(
        lambda session: merges.separate(session, user=bank.user, source_id=account.id, now=bank.now)
    )


def delete(bank: Bank, account: StoredAccount) -> None:
    bank.database.atomically(
        lambda session: rebuild.delete(session, user=bank.user, account_id=account.id, now=bank.now)
    )


def counted(bank: Bank) -> list[tuple[str | None, int]]:
    """The bookings that count: account and amount."""
    return [(name, int(amount)) for name, amount in listed(bank)]


def shown(bank: Bank) -> list[Row]:
    """The bookings of Giro."""
    giro = every(bank)["Giro"].id
    rows = bank.rows("booking_date, amount, purpose, account_id, id")
    return [row for row in rows if row["account_id"] == giro]


def of(name: str, *amounts: int) -> list[tuple[str, int]]:
    return [(name, each) for each in sorted(amounts)]


def test_one_file_may_tell_of_two_accounts_in_question(bank: Bank, another: Callable[[], Bank]) -> None:
    bank.bring(bookings(THREE), account=GIRO)
    bank.bring(bookings(OTHER_THREE), account=SAVINGS)
    files, other = files_of(bank), another()
    told(
        files,
        (LIVE, f"{THREE}\n2026-10-10 | -100.00 | X | x"),
        (SECOND, f"{OTHER_THREE}\n2026-10-11 | -200.00 | Y | y"),
    )
    asked = {each.name: each.same_as for each in every(bank).values()}
    assert (asked["Live"], asked["Second"]) == (every(bank)["Giro"].id, every(bank)["Tag"].id)
    both = [*of("Giro", -100, -7, -6, -5), *of("Tag", -200, -17, -16, -15)]
    assert counted(bank) == both
    other.bring(bookings("2026-11-05 | -1.00 | |"), account=AccountRecord(stable_key="3", currency="EUR", name="Third"))
    assert counted(bank) == sorted([*both, ("Third", -1)])
    for name in ("Live", "Second"):
        show(bank, every(bank)[name])
    own = [*of("Live", -100, -7, -6, -5), *of("Second", -200, -17, -16, -15)]
    assert counted(bank) == sorted([*of("Giro", -7, -6, -5), *of("Tag", -17, -16, -15), ("Third", -1), *own])


@pytest.fixture
def renamed(bank: Bank) -> Bank:
    """The files of a person of whom one file told a former account (Tag) and a new one (Giro) of the same bookings."""
    files = files_of(bank)
    told(
        files,
        (SAVINGS, f"2026-10-07 | -77.00 | X | x\n2026-10-08 | -8.00 | Y | y\n{THREE}"),
        (GIRO, f"{THREE}\n2026-11-08 | -2.00 | Z | z"),
    )
    assert (every(files)["Tag"].same_as, every(files)["Giro"].same_as) == (every(files)["Giro"].id, None)
    assert counted(files) == of("Giro", -77, -8, -7, -6, -5, -2)
    return files


def test_one_file_may_tell_of_an_account_in_question_and_of_the_one_that_holds_its_bookings(renamed: Bank) -> None:
    giro = every(renamed)["Giro"].id
    proven = integrity.evidence(renamed.database, renamed.user.id, [giro]).moved.filter(account_id=giro)
    assert sorted(proven["amount"]) == [-7, -6, -5, -2]
    show(renamed, every(renamed)["Tag"])
    apart = [*of("Giro", -7, -6, -5, -2), *of("Tag", -77, -8, -7, -6, -5)]
    assert counted(renamed) == apart
    renamed.bring(bookings("2026-10-07 | -77.00 | X | x\n2026-10-08 | -8.00 | Y | y"), account=SAVINGS)
    assert counted(renamed) == apart


@pytest.mark.parametrize("name", ["Giro", "Tag"])
def test_of_two_accounts_of_one_file_each_is_deleted_with_its_own_bookings(renamed: Bank, name: str) -> None:
    delete(renamed, every(renamed)[name])
    assert counted(renamed) == (of("Giro", -7, -6, -5, -2) if name == "Tag" else of("Tag", -77, -8, -7, -6, -5))


def test_one_file_may_tell_of_two_accounts_that_are_one_now_and_two_again_later(renamed: Bank) -> None:
    tag = every(renamed)["Tag"]
    merge(renamed, tag, every(renamed)["Giro"])
    late = "2026-11-09 | -3.00 | L | l"
    told(
        renamed,
        (SAVINGS, f"{THREE}\n{late}"),
        (GIRO, f"{THREE}\n2026-11-08 | -2.00 | Z | z\n{late}"),
    )
    assert counted(renamed) == of("Giro", -77, -8, -7, -6, -5, -3, -2)
    separate(renamed, tag)
    assert counted(renamed) == of("Giro", -77, -8, -7, -6, -5, -3, -2)
    show(renamed, every(renamed)["Tag"])
    assert counted(renamed) == [*of("Giro", -7, -6, -5, -3, -2), *of("Tag", -77, -8, -7, -6, -5, -3)]


def test_the_newer_iban_is_that_of_the_account_whose_latest_bookings_another_one_holds(bank: Bank) -> None:
    bank.bring(bookings(THREE), account=GIRO)
    files_of(bank).bring(bookings(f"{THREE}\n2026-11-08 | -8.00 | D | d"), account=SAVINGS)
    assert counted(bank) == of("Giro", -8, -7, -6, -5)
    merge(bank, every(bank)["Tag"], every(bank)["Giro"])
    assert every(bank)["Giro"].ibans == [SAVINGS.iban, GIRO.iban]


def test_what_both_have_is_first_what_is_of_one_day(bank: Bank) -> None:
    november = "2026-11-01 | -850.00 | Landlord | November"
    bank.bring(bookings(f"{november}\n{THREE}\n2026-11-20 | -9.00 | E | e"), account=GIRO)
    bridge = f"2026-10-30 | -850.00 | Landlord | deposit\n{november}\n{THREE}\n2026-11-18 | -9.00 | E | e"
    files_of(bank).bring(bookings(bridge), account=LIVE)
    days = [(row["booking_date"].day, row["purpose"]) for row in shown(bank)]
    assert days == [(30, "deposit"), (1, "November"), (2, "a"), (3, "b"), (5, "c"), (20, "e")]


@pytest.mark.parametrize(("until", "is_told"), [("2026-10-27", False), ("2026-10-29", True)])
def test_an_equal_amount_two_days_off_is_another_booking_where_neither_was_told_the_day_of_the_other(
    bank: Bank, another: Callable[[], Bank], until: str, is_told: bool
) -> None:
    bank.bring(bookings(f"2026-10-27 | -3.50 | Cafe |\n{until} | -9.00 | E | e"), account=GIRO)
    bank.bring(bookings(THREE), account=GIRO)
    another().bring(bookings(f"2026-10-29 | -3.50 | Cafe |\n{THREE}"), account=LIVE)
    coffees = [Decimal("-3.50")] * (1 if is_told else 2)
    assert sorted(row["amount"] for row in shown(bank)) == [-9, -7, -6, -5, *coffees]


def test_who_may_be_two_accounts_holds_the_same_bookings_whatever_comes(
    bank: Bank, another: Callable[[], Bank]
) -> None:
    bank.bring(bookings(THREE), account=GIRO)
    more = f"{THREE}\n2026-11-09 | -8.00 | D | d"
    another().bring(bookings(more), account=LIVE)
    another().bring(bookings(more), account=SECOND)

    def held() -> list[str]:
        rows = bank.rows("id, account_id, booking_date, amount")
        return [row["id"] for row in rows if row["account_id"] == every(bank)["Giro"].id]

    before = held()
    assert len(before) == 4
    ids = {every(bank)[name].id for name in ("Live", "Second")}
    for id_ in sorted(ids):  # each lies behind the other one then
        bank.database.atomically(
            lambda session, id_=id_: rebuild.rebuild(  # type: ignore[misc]
                session, user=bank.user, account_ids={id_}, job_id="again", now=bank.now
            )
        )
        assert held() == before


def test_an_account_that_is_separated_again_is_in_question_and_lends_again(bank: Bank) -> None:
    bank.bring(bookings(THREE), account=GIRO)
    files_of(bank).bring(bookings(f"{THREE}\n2026-11-09 | -8.00 | D | d"), account=LIVE)
    live = every(bank)["Live"]
    merge(bank, live, every(bank)["Giro"])
    separate(bank, live)
    assert (every(bank)["Live"].same_as, counted(bank)) == (every(bank)["Giro"].id, of("Giro", -8, -7, -6, -5))


def test_whoever_keeps_a_copy_is_told_of_all_that_is_not_shown_any_more(bank: Bank) -> None:
    more = "2026-11-09 | -8.00 | D | d"
    bank.bring(bookings(THREE), account=GIRO)
    files_of(bank).bring(bookings(f"{THREE}\n{more}"), account=LIVE)
    kept, live = _shown_ids(bank), every(bank)["Live"]
    bank.bring(bookings(more.replace("D | d", "D | said otherwise")), account=GIRO)  # the file's is shown no more
    merge(bank, live, every(bank)["Giro"])
    separate(bank, live)
    gone = {row["id"] for row in bank.database.rows("SELECT id FROM removed WHERE user_id = $1", bank.user.id)}
    assert len(kept - _shown_ids(bank)) == 1
    assert kept - _shown_ids(bank) <= gone


def _shown_ids(bank: Bank) -> set[str]:
    shown = {each.id for each in every(bank).values() if not each.is_hidden}
    return {row["id"] for row in bank.rows("account_id, id, booking_date") if row["account_id"] in shown}


def test_the_question_about_an_account_that_is_a_part_of_another_one_meanwhile_is_about_that(
    bank: Bank, another: Callable[[], Bank]
) -> None:
    bank.bring(bookings(THREE), account=GIRO)
    files_of(bank).bring(bookings(f"{THREE}\n2026-11-09 | -8.00 | D | d"), account=LIVE)
    another().bring(bookings("2026-01-05 | -1.00 | |"), account=SECOND)
    live = every(bank)["Live"]
    merge(bank, live, every(bank)["Giro"])
    merge(bank, every(bank)["Giro"], every(bank)["Second"])
    separate(bank, live)
    assert every(bank)["Live"].same_as == every(bank)["Second"].id
    assert counted(bank) == of("Second", -8, -7, -6, -5, -1)


@pytest.mark.parametrize("is_hidden_by_hand", [False, True])
def test_who_is_in_question_about_an_account_in_question_lends_to_the_one_that_is_shown(
    bank: Bank, another: Callable[[], Bank], is_hidden_by_hand: bool
) -> None:
    september = THREE.replace("-11-", "-09-").replace(" | -", " | -4")
    bank.bring(bookings(f"{september}\n2026-11-01 | -500.00 | |"), account=GIRO)
    second, third = another(), another()
    second.bring(bookings(THREE if not is_hidden_by_hand else f"{THREE}\n{september}"), account=SECOND)
    if is_hidden_by_hand:
        show(bank, every(bank)["Second"])
    third.bring(bookings(f"{THREE}\n2026-11-09 | -8.00 | D | d"), account=LIVE)
    assert every(bank)["Live"].same_as == every(bank)["Second"].id
    if is_hidden_by_hand:  # which takes back the answer that it is not Giro
        id_ = every(bank)["Second"].id
        bank.database.atomically(
            lambda session: same_accounts.hide(
                session, user_id=bank.user.id, account_id=id_, is_hidden=True, now=bank.now
            )
        )
    else:
        second.bring(bookings(september), account=SECOND)
    assert every(bank)["Second"].same_as == every(bank)["Giro"].id
    assert counted(bank) == of("Giro", -500, -47, -46, -45, -8, -7, -6, -5)


def words(bank: Bank) -> list[str]:
    return [row["note"] for row in bank.database.rows("SELECT note FROM annotations")]


@pytest.mark.parametrize("name", ["Giro", "Live"])
def test_words_go_with_the_account_whose_booking_they_are_of_and_not_with_the_one_that_holds_it(
    bank: Bank, name: str
) -> None:
    bank.bring(bookings(THREE), account=GIRO)
    files_of(bank).bring(bookings(f"{THREE}\n2026-11-09 | -8.00 | D | d"), account=LIVE)
    (eighth,) = [row["id"] for row in bank.rows("id, amount, booking_date") if row["amount"] == -8]
    said = Annotation(eighth, note="mine")
    bank.database.atomically(lambda session: annotations.say(session, bank.user.id, said, now=bank.now))
    delete(bank, every(bank)[name])
    assert words(bank) == (["mine"] if name == "Giro" else [])


def test_a_gap_between_statements_has_no_adjusting_entry_for_what_the_account_in_question_tells_of_it(
    bank: Bank, another: Callable[[], Bank]
) -> None:
    def stated(opening: str, first: str, closing: str, last: str) -> StatementRecord:
        return StatementRecord(
            opening=Decimal(opening),
            opening_date=date.fromisoformat(first),
            closing=Decimal(closing),
            closing_date=date.fromisoformat(last),
            is_authoritative=True,
        )

    files = files_of(bank)
    files.bring(bookings(THREE), account=GIRO, statement=stated("100", "2026-11-02", "82", "2026-11-05"))
    files.bring(
        bookings("2026-11-20 | -1.00 | D | d"),
        account=GIRO,
        statement=stated("42", "2026-11-20", "41", "2026-11-20"),
    )
    with_gap = of("Giro", -40, -7, -6, -5, -1)
    assert counted(files) == with_gap
    another().bring(bookings(f"{THREE}\n2026-11-10 | -39.00 | X | x"), account=LIVE)
    with_what_is_told = of("Giro", -39, -7, -6, -5, -1, -1)
    assert counted(files) == with_what_is_told
    show(files, every(files)["Live"])
    assert counted(files) == sorted([*with_gap, *of("Live", -39, -7, -6, -5)])
    named = {"user_id": files.user.id, "account_id": every(files)["Live"].id}
    files.database.atomically(lambda s: same_accounts.hide(s, **named, is_hidden=True, now=files.now))
    assert counted(files) == with_what_is_told
    merge(files, every(files)["Live"], every(files)["Giro"])
    assert counted(files) == with_what_is_told


def test_what_the_bank_has_corrected_or_taken_back_is_not_shown_again_for_an_older_file(
    bank: Bank, another: Callable[[], Bank]
) -> None:
    def window(closing: str) -> StatementRecord:
        first, last = date(2026, 11, 1), date(2026, 11, 9)
        return StatementRecord(closing=Decimal(closing), closing_date=last, told_from=first, told_until=last)

    told = f"{FOUR}\n2026-11-04 | -20.00 | E | e\n2026-11-04 | -25.00 | G | g"
    bank.bring(bookings(told), account=GIRO, statement=window("29"))
    another().bring(bookings(f"{told}\n2026-11-04 | -30.00 | F | f"), account=LIVE)
    assert counted(bank) == of("Giro", -30, -25, -20, -8, -7, -6, -5)
    bank.now += timedelta(days=1)
    bank.bring(bookings(told.replace("20.00", "21.00")), account=GIRO, statement=window("28"))
    assert counted(bank) == of("Giro", -30, -25, -21, -8, -7, -6, -5)
    bank.now += timedelta(days=1)
    bank.bring(bookings(f"{FOUR}\n2026-11-04 | -21.00 | E | e"), account=GIRO, statement=window("53"))
    assert counted(bank) == of("Giro", -30, -21, -8, -7, -6, -5)
    show(bank, every(bank)["Live"])
    assert counted(bank) == [*of("Giro", -21, -8, -7, -6, -5), *of("Live", -30, -25, -20, -8, -7, -6, -5)]


def test_a_balance_that_its_person_said_goes_on_with_what_is_shown_for_the_account_in_question(
    bank: Bank, another: Callable[[], Bank]
) -> None:
    said = StatementRecord(closing=Decimal(100), closing_date=date(2026, 11, 5), sequence=BY_THE_PERSON)
    files_of(bank).bring(bookings(THREE), account=GIRO, statement=said)
    another().bring(bookings(f"{THREE}\n2026-11-09 | -8.00 | D | d"), account=LIVE)
    giro = every(bank)["Giro"]
    assert (giro.balance, giro.balance_date) == (Decimal(92), date(2026, 11, 9))
    show(bank, every(bank)["Live"])
    giro = every(bank)["Giro"]
    assert (giro.balance, giro.balance_date) == (Decimal(100), date(2026, 11, 5))
