"""A bank gives an account a new IBAN: its person says that the one account continues the other."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from handlers.commands.control_socket import CommandError
from storage import accounts
from storage.accounts import StoredAccount
from tests.imports.household import Household
from tests.imports.statements_in_xml import camt
from tests.imports.test_accounts import amounts, command, mt940

Write = Callable[..., Path]

OLD, NEW, THIRD = "DE02120300000000202051", "DE89370400440532013000", "AT611904300234573201"
JUNE = """
    2026-06-01 | 2000.00 | Firma | Lohn       | A1
    2026-06-03 | -700.00 | Haus  | Miete      | A2
    2026-06-20 |  -30.00 | Post  | Porto      | A3
    2026-07-01 | 2000.00 | Firma | Lohn       | A4
    2026-07-03 | -700.00 | Haus  | Miete      | A5
    2026-07-10 |  -20.00 | Markt | Einkauf    | A6
    2026-07-10 |  -20.00 | Markt | Einkauf    | A7
"""
JULY = """
    2026-07-01 | 2000.00 | Firma | Lohn       | B1
    2026-07-03 | -700.00 | Haus  | Miete      | B2
    2026-07-10 |  -20.00 | Markt | Einkauf    | B3
    2026-07-10 |  -20.00 | Markt | Einkauf    | B4
    2026-07-20 |  -45.00 | Strom | Abschlag   | B5
"""
TOGETHER = [Decimal(each) for each in (-700, -700, -45, -30, -20, -20, 2000, 2000)]


def old_one(iban: str = OLD) -> str:
    return camt(iban, JUNE, opening="100.00", closing="2630.00")


def new_one(iban: str = NEW) -> str:
    return camt(iban, JULY, opening="1370.00", closing="2585.00")


def owned(eva: Household) -> dict[str | None, StoredAccount]:
    return {each.iban: each for each in accounts.every(eva.services.everybody, eva.user.id)}


def both(eva: Household, write: Write) -> tuple[StoredAccount, StoredAccount]:
    """The account as it came under its old IBAN and under the new one, two until its person says otherwise."""
    eva.bring(write("old.xml", old_one()))
    eva.bring(write("new.xml", new_one()))
    command(eva, "accounts show", account=NEW, is_hidden=False)
    return owned(eva)[OLD], owned(eva)[NEW]


def only(eva: Household) -> StoredAccount:
    (account,) = accounts.every(eva.services.everybody, eva.user.id)
    return account


@pytest.mark.requirement("accounts.merged")
def test_the_bookings_told_twice_count_once_and_the_newer_iban_and_balance_hold(eva: Household, write: Write) -> None:
    old, new = both(eva, write)
    before = eva.state()
    with pytest.raises(CommandError, match="different IBANs cannot be merged, unless the bank has given"):
        command(eva, "accounts merge", account=new.id, into=old.id)
    eva.lines.clear()
    command(eva, "accounts merge", account=new.id, into=old.id, continues=True, is_dry_run=True)
    assert "4 of them are in both and would count once. The balance would be 2585.00 EUR" in eva.lines[0]
    assert eva.state() == before
    command(eva, "accounts merge", account=new.id, into=old.id, continues=True)
    one = only(eva)
    assert (one.id, one.ibans, one.balance, one.bank_name) == (old.id, [NEW, OLD], Decimal("2585"), "Commerzbank")
    assert amounts(eva) == TOGETHER
    command(eva, "accounts separate", account=new.id)
    assert eva.state() == before


@pytest.mark.requirement("accounts.merged")
def test_the_newer_iban_is_that_with_the_latest_bookings_whichever_account_stays(eva: Household, write: Write) -> None:
    old, new = both(eva, write)
    command(eva, "accounts merge", account=OLD, into=NEW, continues=True)
    assert (only(eva).id, only(eva).ibans, only(eva).balance) == (new.id, [NEW, OLD], Decimal("2585"))
    command(eva, "accounts separate", account=old.id)
    assert {each.iban: each.ibans for each in owned(eva).values()} == {OLD: [OLD], NEW: [NEW]}


@pytest.mark.requirement("accounts.merged")
def test_later_files_under_either_iban_go_there_and_an_import_taken_back_leaves_the_rest(
    eva: Household, write: Write
) -> None:
    first = eva.bring(write("old.xml", old_one()))
    eva.bring(write("new.xml", new_one()))
    command(eva, "accounts merge", account=NEW, into=OLD, continues=True)
    eva.bring(write("late.xml", camt(OLD, "2026-07-13 | -1.00 | Kiosk | Zeitung | A9")))
    august = mt940("37040044/0532013000", ("0801", "D", "2,00", "Kiosk"), closing="5,00")
    eva.bring(write("august.sta", august.replace("C260331", "C260801")))
    assert [each.iban for each in accounts.every(eva.services.everybody, eva.user.id)] == [NEW]
    assert amounts(eva) == sorted([*TOGETHER, Decimal(-1), Decimal(-2)])
    eva.undo(first)
    assert (only(eva).ibans, len(amounts(eva))) == ([NEW, OLD], 7)
    assert accounts.resolve(eva.services.everybody, eva.user.id, OLD) == only(eva)


@pytest.mark.requirement("accounts.merged")
def test_a_third_iban_comes_after_the_second_and_each_merge_is_taken_back_alone(eva: Household, write: Write) -> None:
    both(eva, write)
    eva.bring(write("third.xml", new_one(THIRD).replace("2026-07-20", "2026-07-21")))
    old, new, third = owned(eva)[OLD], owned(eva)[NEW], owned(eva)[THIRD]
    command(eva, "accounts merge", account=third.id, into=new.id, continues=True)
    command(eva, "accounts merge", account=new.id, into=old.id, continues=True)
    assert (only(eva).id, only(eva).ibans) == (old.id, [THIRD, OLD, NEW])
    command(eva, "accounts separate", account=new.id)
    assert {each.id: each.ibans for each in owned(eva).values()} == {old.id: [OLD], new.id: [THIRD, NEW]}


@pytest.mark.requirement("accounts.merged")
def test_what_is_paid_to_the_former_iban_stays_a_transfer_between_own_accounts(eva: Household, write: Write) -> None:
    both(eva, write)
    eva.bring(write("saved.xml", camt(THIRD, f"2026-07-02 | -50.00 | {OLD} @ Eva | Rate | C1")))
    eva.bring(write("swept.xml", camt(OLD, f"2026-07-30 | -8.00 | {NEW} @ Eva | Rest | A8")))
    eva.bring(write("got.xml", camt(NEW, f"2026-07-31 | 8.00 | {OLD} @ Eva | Rest | B8")))
    old = owned(eva)[OLD]
    command(eva, "accounts merge", account=NEW, into=OLD, continues=True)
    between = [row for row in eva.rows("transactions") if row["transfer_account_id"]]
    assert sorted((row["amount"], row["transfer_account_id"], bool(row["transfer_id"])) for row in between) == [
        (Decimal(-50), old.id, False),
        (Decimal(-8), old.id, True),
        (Decimal(8), old.id, True),
    ]
    assert {row["category"] for row in between} == {"TRANSFER"}


@pytest.mark.requirement("accounts.overlap")
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_ibans_whose_shared_days_agree_to_the_cent_are_asked_about_and_a_yes_makes_them_one(
    order: tuple[int, int], eva: Household, write: Write
) -> None:
    for place in order:
        eva.bring(write(f"{place}.xml", (old_one(), new_one())[place]))
    asked = next(each for each in owned(eva).values() if each.is_hidden)
    other = next(each for each in owned(eva).values() if not each.is_hidden)
    assert (asked.iban, asked.same_as) == ((OLD, NEW)[order[1]], other.id)
    command(eva, "accounts merge", account=asked.id, into=other.id)
    assert (only(eva).ibans, only(eva).balance, amounts(eva)) == ([NEW, OLD], Decimal("2585"), TOGETHER)


@pytest.mark.requirement("accounts.overlap")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("-700.00 | Haus", "-700.01 | Haus"),
        ("2026-07-03 | -700.00", "2026-07-04 | -700.00"),
        ("    2026-07-10 |  -20.00 | Markt | Einkauf    | B4\n", ""),
        ("| Haus ", "| AT611904300234573201 @ Haus "),
        ("2026-07-03 | -700.00 | Haus  | Miete      | B2\n", "2026-07-03 | -20.00 | Haus | Miete | B2\n"),
    ],
)
def test_two_ibans_of_which_one_booking_differs_are_two_accounts(
    before: str, after: str, eva: Household, write: Write
) -> None:
    assert before in JULY
    house = "DE02100100100006820101 @ Haus "
    eva.bring(
        write("old.xml", camt(OLD, JUNE.replace("Haus ", house) + "    2026-07-11 | -1.00 | Post | Porto | A8\n"))
    )
    eva.bring(write("new.xml", camt(NEW, JULY.replace(before, after).replace("| Haus ", f"| {house}"))))
    assert [each.is_hidden for each in owned(eva).values()] == [False, False]
