"""A separation gives back what an account had before its merge, whoever said that it belongs there."""

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest

from analytics.recurring.added import AddedPayment, id_of
from handlers.commands.table import perform
from handlers.work.sync.statement_files import say_balances
from storage import accounts
from storage.annotations import annotations
from storage.annotations.annotation import Annotation
from storage.recurring import added
from tests.imports.household import Household
from tests.imports.statements_in_xml import GIRO, SAVINGS, camt
from tests.imports.test_accounts import JANUARY, amounts, command, csv, mt940, names

Write = Callable[..., Path]
EXTRA = mt940("77", ("0201", "C", "1,00", "x"), ("0202", "C", "2,00", "y"), closing="63,00").replace(
    "260101EUR0,00", "260201EUR60,00"
)
MORE = (
    mt940("77", ("0402", "C", "4,00", "z"), closing="67,00")
    .replace("260331", "260430")
    .replace("260101EUR0,00", "260401EUR63,00")
)


def say(eva: Household, account_id: str, amount: str, day: date = date(2026, 4, 1)) -> None:
    said = {day: Decimal(amount)}
    eva.services.everybody.atomically(
        lambda session: say_balances(
            session, said, user=eva.user, account_id=account_id, currency="EUR", clock=eva.services.clock
        )
    )


def ids(eva: Household) -> list[str]:
    return [each.id for each in accounts.every(eva.services.everybody, eva.user.id)]


def balances(eva: Household) -> dict[str, Decimal | None]:
    return {each.id: each.balance for each in accounts.every(eva.services.everybody, eva.user.id)}


def giro_and_neben(eva: Household, write: Write) -> tuple[str, str]:
    """The ids of an account of a bank and of one without an IBAN, with a file and a balance that its user chose it
    for."""
    eva.bring(write("giro.xml", camt(GIRO, "2026-01-05 | 50.00 | A | a |", opening="0.00", closing="50.00")))
    eva.bring(write("a.csv", JANUARY))
    giro, neben = ids(eva)
    eva.bring(write("extra.sta", EXTRA), account=neben)
    say(eva, neben, "100.00")
    return giro, neben


@pytest.mark.requirement("accounts.merged")
def test_files_and_balances_that_were_said_to_be_of_an_account_go_with_it_when_it_is_separated(
    eva: Household, write: Write
) -> None:
    giro, neben = giro_and_neben(eva, write)
    before = eva.state()
    assert amounts(eva, giro) == [50]
    assert [each for each in amounts(eva, neben) if each > 0] == [1, 2, 10, 20, 30]
    assert balances(eva) == {giro: 50, neben: 100}
    command(eva, "accounts merge", account=neben, into=giro)
    assert ids(eva) == [giro]
    command(eva, "accounts separate", account=neben)
    assert balances(eva) == {giro: 50, neben: 100}
    assert eva.state() == before
    eva.bring(write("more.sta", MORE))
    assert amounts(eva, giro) == [50]


@pytest.mark.requirement("accounts.merged")
def test_what_a_chosen_source_brings_after_a_merge_is_of_the_account_that_it_was_chosen_for(
    eva: Household, write: Write
) -> None:
    giro, neben = giro_and_neben(eva, write)
    command(eva, "accounts merge", account=neben, into=giro)
    eva.bring(write("more.sta", MORE))
    say(eva, giro, "60.00", date(2026, 4, 2))
    assert Decimal(4) in amounts(eva, giro)
    command(eva, "accounts separate", account=neben)
    assert amounts(eva, giro) == [50]
    assert {1, 2, 4, 10, 20, 30} <= set(amounts(eva, neben))
    assert balances(eva)[giro] == 60


@pytest.mark.requirement("accounts.merged")
@pytest.mark.parametrize("is_first", [True, False])
def test_two_accounts_of_files_that_name_none_are_two_again(eva: Household, write: Write, is_first: bool) -> None:
    eva.bring(write("eva.csv", JANUARY))
    eva.answers = [1]
    eva.bring(write("tom.csv", csv(("2026-01-10", "7.00", "another"))))
    before = eva.state()
    source, target = ids(eva) if is_first else reversed(ids(eva))
    command(eva, "accounts merge", account=source, into=target)
    assert names(eva) == ["N26 2" if is_first else "N26"]
    assert amounts(eva, target) == [7, 10, 20, 30]
    command(eva, "accounts separate", account=source)
    assert eva.state() == before


@pytest.mark.requirement("accounts.merged")
@pytest.mark.parametrize("is_inner_first", [True, False])
def test_merges_of_merges_are_taken_back_with_what_was_said_of_each(
    eva: Household, write: Write, is_inner_first: bool
) -> None:
    giro, neben = giro_and_neben(eva, write)
    eva.bring(write("third.sta", mt940("3", ("0102", "C", "3,00", "x"), closing="3,00")))
    third = next(each for each in ids(eva) if each not in (giro, neben))
    say(eva, third, "33.00")
    before = eva.state()
    command(eva, "accounts merge", account=neben, into=third)
    between = eva.state()
    command(eva, "accounts merge", account=third, into=giro)
    if is_inner_first:
        command(eva, "accounts separate", account=neben)
        assert Decimal(2) in amounts(eva, neben)
        assert balances(eva)[neben] == 100
        command(eva, "accounts separate", account=third)
    else:
        command(eva, "accounts separate", account=third)
        assert eva.state() == between
        command(eva, "accounts separate", account=neben)
    assert balances(eva) == {giro: 50, neben: 100, third: 33}
    assert eva.state() == before


@pytest.mark.requirement("accounts.merged")
def test_a_balance_said_of_an_account_returns_with_it_from_a_merge_that_an_older_version_made(
    eva: Household, write: Write
) -> None:
    giro, neben = giro_and_neben(eva, write)
    command(eva, "accounts merge", account=neben, into=giro)
    eva.services.everybody.execute("UPDATE contributions SET told_of = NULL")
    command(eva, "accounts separate", account=neben)
    assert balances(eva) == {giro: 50, neben: 100}


@pytest.mark.requirement("accounts.merged")
@pytest.mark.parametrize("is_older", [False, True])
def test_a_payment_added_by_hand_returns_with_its_account(eva: Household, write: Write, is_older: bool) -> None:
    giro, neben = giro_and_neben(eva, write)
    database = eva.services.everybody
    payments = [
        AddedPayment(
            id=id_of(eva.user.id, id_, "Rent", "outgoing", "monthly"),
            account_id=id_,
            name="Rent",
            amount=Decimal(5),
            direction="outgoing",
            frequency="monthly",
            next_day=date(2026, 5, 1),
        )
        for id_ in (giro, neben)
    ]
    for each in payments:
        database.atomically(partial(added.keep, user_id=eva.user.id, payment=each))
    command(eva, "accounts merge", account=neben, into=giro)
    assert [each.account_id for each in added.of_user(database, eva.user.id)] == [giro, giro]
    if is_older:  # a version that moved them with the merge
        database.execute("UPDATE recurring_added SET account_id = $1", giro)
    command(eva, "accounts separate", account=neben)
    assert added.of_user(database, eva.user.id) == sorted(payments, key=lambda each: each.id)


@pytest.mark.requirement("accounts.merged")
def test_notes_follow_their_bookings_into_a_merge_and_out_of_it(eva: Household, write: Write) -> None:
    giro, neben = giro_and_neben(eva, write)
    database, now = eva.services.everybody, eva.services.clock.now()
    noted = {row["id"]: f"{row['amount']}" for row in eva.rows("transactions") if row["amount"] in (1, 10, 20, 50)}
    for id_, note in noted.items():
        said = Annotation(id_, note=note)
        database.atomically(partial(annotations.say, user_id=eva.user.id, annotation=said, now=now))
    command(eva, "accounts merge", account=neben, into=giro)
    there = {row["id"]: row["amount"] for row in eva.rows("transactions")}
    found = annotations.of_user(database, eva.user.id).by_id
    assert {there[id_]: each.note for id_, each in found.items()} == {Decimal(note): note for note in noted.values()}
    command(eva, "accounts separate", account=neben)
    found = annotations.of_user(database, eva.user.id).by_id
    assert {id_: each.note for id_, each in found.items()} == noted


@pytest.mark.requirement("accounts.merged")
@pytest.mark.parametrize(
    ("months", "of_them", "bookings"),
    [(["01", "02"], "0 of them are", "0 bookings were"), (["01", "01"], "1 of them is", "1 booking was")],
)
def test_a_merge_says_how_many_bookings_were_in_both(
    eva: Household, write: Write, months: list[str], of_them: str, bookings: str
) -> None:
    for month, iban in zip(months, (GIRO, SAVINGS), strict=True):
        told = camt(iban, f"2026-{month}-05 | 1.00 | A | a |", opening="0.00", closing="1.00")
        eva.bring(write(f"{iban}.xml", told))
    giro, savings = ids(eva)
    eva.lines.clear()
    for is_dry_run in (True, False):
        perform(
            eva.services,
            "accounts merge",
            {"user": "eva", "account": giro, "into": savings, "continues": True, "is_dry_run": is_dry_run},
            eva,
        )
    assert f"; {of_them} in both and would count once" in eva.lines[0]
    assert f": {bookings} in both and count" in eva.lines[1]
