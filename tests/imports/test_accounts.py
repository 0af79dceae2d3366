"""Accounts as people have them: named, hidden, merged, deleted, chosen for a file."""

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from analytics.records import AccountRecord
from auth.principal import Principal
from connectors.reference.bank_names import with_bank_names
from handlers.commands.control_socket import CommandError
from handlers.commands.table import perform
from handlers.operations.selection import selected_accounts
from handlers.work.sync.detection import recurring_of
from handlers.work.sync.statement_files import say_balances
from storage import accounts, transactions
from storage.accounts import StoredAccount
from storage.transactions import KEPT, Selection
from tests.cache.from_store import matching
from tests.imports.household import Household
from tests.imports.statements_in_xml import GIRO, SAVINGS, camt

Write = Callable[..., Path]

MT940 = ":20:1\n:25:{account}\n:28C:1/1\n:60F:C260101EUR0,00\n{entries}:62F:C260331EUR{closing}\n-\n"


def mt940(account: str, *entries: tuple[str, str, str, str], closing: str = "0,00") -> str:
    """A statement of entries `(month and day, C or D, amount, words)`."""
    lines = "".join(
        f":61:26{day}{day}{side}{amount}NTRFNONREF\n:86:166?00GUTSCHRIFT?20{words}?32Someone\n"
        for day, side, amount, words in entries
    )
    return MT940.format(account=account, entries=lines, closing=closing)


def csv(*rows: tuple[str, str, str]) -> str:
    """A CSV of N26, which does not say which account it is: `(day, amount, words)`."""
    return "Date,Payee,Account number,Transaction type,Payment reference,Amount (EUR)\n" + "".join(
        f"{day},Someone,,Income,{words},{amount}\n" for day, amount, words in rows
    )


JANUARY = csv(("2026-01-02", "10.00", "one"), ("2026-01-09", "20.00", "two"), ("2026-01-16", "30.00", "three"))
THE_SAME = mt940(
    "28020050/1426292700",
    ("0102", "C", "10,00", "Words of the bank"),
    ("0109", "C", "20,00", "Others than in the CSV"),
    ("0116", "C", "30,00", "And still the same"),
)


def names(eva: Household) -> list[str | None]:
    return [account.name for account in accounts.of_user(eva.services.everybody, eva.user.id)]


def amounts(eva: Household, account_id: str | None = None) -> list[Decimal]:
    return sorted(row["amount"] for row in eva.rows("transactions") if account_id in (None, row["account_id"]))


def command(eva: Household, what: str, /, **arguments: Any) -> None:
    perform(eva.services, what, {"user": "eva", **arguments}, eva)


def only(eva: Household) -> StoredAccount:
    (account,) = accounts.every(eva.services.everybody, eva.user.id)
    return account


@pytest.mark.requirement("accounts.german-iban")
@pytest.mark.parametrize(
    ("key", "iban"),
    [
        ("10011001/2626262626", "DE52100110012626262626"),
        ("12030000/202051", "DE02120300000000202051"),
        ("28020050/1426292700", "DE43280200501426292700"),
        ("37040044/532013000", "DE89370400440532013000"),
        ("37040044/5320130", None),  # Commerzbank: a short number lacks its sub-account
        ("99999999/2626262626", None),  # no such bank
        ("12030000/202052", None),  # wrong check digit
        ("10011001/0000000000", None),
        ("70020270/1234567", None),  # HypoVereinsbank
        ("TRIODOSBANK/0390123456", None),
        ("DE02120300000000202051", None),
    ],
)
def test_bank_code_and_number_make_an_iban_where_it_is_certain(key: str, iban: str | None) -> None:
    (named,) = with_bank_names(iter([AccountRecord(stable_key=key, currency="EUR")]))
    assert isinstance(named, AccountRecord)
    assert named.iban == iban


@pytest.mark.requirement("accounts.german-iban")
@pytest.mark.parametrize(
    ("key", "bic", "name"),
    [
        ("28020050/1", None, "Oldenburgische Landesbank AG"),
        ("DABADKKK/1234567890", "DABADKKK", "DANSKE BANK A/S"),
        ("DEUTDEFF/1", "XXXXDEFF", None),
        ("99999999/1", None, None),
    ],
)
def test_a_bank_is_named_by_its_code_or_its_bic(key: str, bic: str | None, name: str | None) -> None:
    (named,) = with_bank_names(iter([AccountRecord(stable_key=key, bic=bic, currency="EUR")]))
    assert isinstance(named, AccountRecord)
    assert named.bank_name == name


@pytest.mark.requirement("accounts.resolve")
@pytest.mark.long
def test_an_account_without_iban_and_name_is_called_by_bank_and_number(eva: Household, write: Write) -> None:
    eva.bring(write("a.sta", mt940("99999999/2626262626", ("0102", "C", "1,00", "x"))))
    eva.bring(write("b.csv", JANUARY))
    eva.bring(write("c.sta", mt940("", ("0102", "C", "1,00", "x"))), connection="Old bank")
    assert names(eva) == ["99999999 / 2626262626", "N26", "Old bank"]
    assert [row["name"] for row in eva.rows("accounts")] == [None, None, None]


@pytest.mark.requirement("accounts.gains-iban")
@pytest.mark.long
def test_an_account_that_gains_an_iban_stays_the_account_and_meets_other_files_of_it(
    eva: Household, write: Write
) -> None:
    eva.bring(write("a.sta", mt940("28020050/1426292700", ("0102", "C", "10,00", "x"))))
    before = only(eva)
    eva.services.everybody.execute("UPDATE accounts SET iban = NULL, id = 'acc_old'")
    eva.services.everybody.execute("UPDATE account_aliases SET account_id = 'acc_old'")
    # What an older version stored: the account under the id of its key
    old = eva.id_by_key("28020050/1426292700")
    eva.services.everybody.execute("UPDATE accounts SET id = $1", old)
    eva.services.everybody.execute("UPDATE transactions SET account_id = $1", old)
    eva.services.everybody.execute("UPDATE contributions SET account_id = $1, source_id = $1", old)
    eva.bring(write("b.sta", mt940("28020050/1426292700", ("0103", "C", "11,00", "y"))))
    assert (only(eva).id, only(eva).iban) == (old, before.iban)
    eva.bring(write("c.xml", camt("DE43280200501426292700", "2026-01-04 | 12.00 | Someone | z |")))
    assert only(eva).id == old
    assert amounts(eva) == [10, 11, 12]


@pytest.mark.requirement("accounts.german-iban")
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.sampled
def test_an_iban_and_its_bank_code_with_number_are_one_account_in_either_order(
    eva: Household, write: Write, order: tuple[int, int]
) -> None:
    told = [
        write("a.sta", mt940("70020270/1234567", ("0102", "C", "10,00", "x"))),  # HypoVereinsbank: makes no IBAN
        write("b.xml", camt("DE86700202700001234567", "2026-01-02 | 10.00 | Someone | x |")),
    ]
    for number in order:
        eva.bring(told[number])
    only(eva)
    assert amounts(eva) == [10]


@pytest.mark.requirement("import.batches")
def test_a_batch_without_reference_counts_once_when_another_file_gives_its_sum(eva: Household, write: Write) -> None:
    detail = '<TxDtls><AmtDtls><TxAmt><Amt Ccy="EUR">{}</Amt></TxAmt></AmtDtls></TxDtls>'
    whole = camt(GIRO, "2026-01-02 | -14.00 | | Sammler |")
    message = re.sub("<TxDtls>.*</TxDtls>", detail.format("10.00") + detail.format("4.00"), whole)
    eva.bring(write("details.xml", message))
    eva.bring(write("sum.sta", mt940("37040044/532013000", ("0102", "D", "14,00", "Sammler"))))
    assert amounts(eva) == [-10, -4]


@pytest.mark.requirement("accounts.resolve")
@pytest.mark.long
def test_an_own_name_survives_imports_and_can_be_taken_away(eva: Household, write: Write) -> None:
    eva.bring(write("a.csv", JANUARY))
    command(eva, "accounts rename", account="n26", name=" Haushalt ")
    job = eva.bring(write("b.csv", JANUARY + "2026-02-01,Someone,,Income,four,40.00\n"))
    assert names(eva) == ["Haushalt"]
    eva.undo(job)
    assert names(eva) == ["Haushalt"]
    for wrong in ("", "\n", "x" * 300):
        with pytest.raises(CommandError, match="The name of an account has 1 to"):
            command(eva, "accounts rename", account="Haushalt", name=wrong)
    command(eva, "accounts rename", account="Haushalt", name=None)
    assert names(eva) == ["N26"]


@pytest.mark.requirement("accounts.resolve")
def test_a_credit_line_is_said_by_a_command_and_taken_back(eva: Household, write: Write) -> None:
    eva.bring(write("a.csv", JANUARY))
    (before,) = accounts.of_user(eva.services.everybody, eva.user.id)
    for amount, then in (("500", 500), ("0", 0), (None, None), ("12.50", Decimal("12.50"))):
        command(eva, "accounts credit-line", account="n26", amount=amount)
        (now,) = accounts.of_user(eva.services.everybody, eva.user.id)
        assert now == replace(before, credit_line=then)
    for wrong in ("-1", "x", "0.001", "1,5", ""):
        with pytest.raises(CommandError, match="A credit line is 0 or more"):
            command(eva, "accounts credit-line", account="n26", amount=wrong)


@pytest.mark.requirement("accounts.resolve")
def test_an_account_whose_file_is_taken_back_is_gone_with_what_was_said_of_its_balance(
    eva: Household, write: Write
) -> None:
    services, path = eva.services, write("giro.xml", camt(GIRO, "2026-01-02 | 10.00 | A | a |"))

    def shown() -> list[tuple[str | None, Decimal | None]]:
        return [(each.iban, each.balance) for each in accounts.every(services.everybody, eva.user.id)]

    job = eva.bring(path)
    (giro,) = accounts.every(services.everybody, eva.user.id)
    said = {date(2026, 1, 3): Decimal(100)}
    services.change(
        eva.user.id,
        lambda session: say_balances(
            session, said, user=eva.user, account_id=giro.id, currency="EUR", clock=services.clock
        ),
    )
    assert shown() == [(GIRO, Decimal(100))]
    eva.undo(job)
    assert shown() == []
    eva.bring(path)
    assert shown() == [(GIRO, None)]


@pytest.mark.requirement("accounts.hidden")
@pytest.mark.long
def test_a_hidden_account_is_in_no_list_and_no_sum_and_goes_on_growing(eva: Household, write: Write) -> None:
    eva.bring(write("giro.xml", camt(GIRO, "2026-01-02 | 10.00 | A | a |", opening="0.00", closing="10.00")))
    eva.bring(write("savings.xml", camt(SAVINGS, "2026-01-02 | 20.00 | B | b |")))
    command(eva, "accounts hide", account=SAVINGS, is_hidden=True)
    database, user = eva.services.everybody, eva.user.id
    hidden = accounts.resolve(database, user, SAVINGS)
    reader = Principal(user_id=user, client_id="", scopes=frozenset(), grant_id=None, has_subscription=True)
    selected = selected_accounts(accounts.of_user(database, user), None, reader)
    assert [account.iban for account in selected.accounts] == [GIRO]
    assert transactions.count(database, user, Selection()) == 1
    assert transactions.everything(database, user, KEPT, hidden=[hidden.id]).height == 1
    assert matching(database, user, Selection(account_ids=selected.filter)).height == 1
    (row,) = [row for row in eva.rows("transactions") if row["account_id"] == hidden.id]
    assert transactions.find(database, user, row["id"]) is None
    assert recurring_of(database, user, selected, today=eva.services.clock.today()) == []
    eva.bring(write("more.xml", camt(SAVINGS, "2026-01-03 | 30.00 | B | c |")))
    assert amounts(eva, hidden.id) == [20, 30]
    assert names(eva) == [None]
    eva.lines.clear()
    command(eva, "accounts list")
    assert [line.split("\t")[3:] for line in eva.lines] == [
        [GIRO, "Commerzbank", "10.00 EUR as of 2026-01-02", "1 booking", "shown"],
        [SAVINGS, "Deutsche Kreditbank Berlin", "no balance EUR", "2 bookings", "hidden"],
    ]
    command(eva, "accounts show", account=SAVINGS, is_hidden=False)
    assert len(accounts.of_user(database, user)) == 2
    assert transactions.find(database, user, row["id"]) is not None


@pytest.mark.requirement("accounts.merged")
@pytest.mark.parametrize("is_older", [False, True])
@pytest.mark.long
def test_merged_accounts_have_every_booking_once_whatever_their_sources_call_it(
    eva: Household, write: Write, is_older: bool
) -> None:
    eva.bring(write("a.csv", JANUARY))
    eva.bring(write("a.sta", THE_SAME))
    if is_older:
        eva.as_from_an_older_version()
    csv_account, target = accounts.every(eva.services.everybody, eva.user.id)
    assert len(amounts(eva)) == 6
    eva.lines.clear()
    command(eva, "accounts merge", account=csv_account.id, into=target.id)
    assert eva.lines == [f"Merged N26 into {target.iban}: 3 bookings were in both and count once."]
    assert only(eva).id == target.id
    assert amounts(eva) == [10, 20, 30]
    eva.bring(write("a.sta", THE_SAME))
    later = eva.bring(write("b.csv", JANUARY + "2026-02-01,Someone,,Income,four,40.00\n"))
    assert amounts(eva) == [10, 20, 30, 40]
    eva.undo(later)
    assert amounts(eva) == [10, 20, 30]


@pytest.mark.requirement("accounts.merged")
@pytest.mark.long
def test_accounts_of_two_currencies_and_one_with_itself_are_not_merged(eva: Household, write: Write) -> None:
    eva.bring(write("a.csv", JANUARY))
    eva.bring(write("usd.sta", mt940("1234", ("0102", "C", "1,00", "x")).replace("EUR", "USD")))
    with pytest.raises(CommandError, match="already one account"):
        command(eva, "accounts merge", account="N26", into="N26")
    with pytest.raises(CommandError, match="different currencies"):
        command(eva, "accounts merge", account="N26", into="1234")
    assert names(eva) == ["N26", "1234"]


@pytest.mark.requirement("accounts.merged")
@pytest.mark.parametrize(
    ("first", "second", "refusal"),
    [
        ({"iban": GIRO, "kind": "checking"}, {"iban": None, "kind": "credit_card"}, "different types"),
        ({"iban": GIRO, "kind": "checking"}, {"iban": SAVINGS, "kind": "checking"}, "different IBANs"),
        ({"iban": GIRO, "kind": None}, {"iban": SAVINGS, "kind": None}, "different IBANs"),
        ({"iban": GIRO, "kind": "checking"}, {"iban": None, "kind": None}, None),
        ({"iban": None, "kind": "savings"}, {"iban": GIRO, "kind": "savings"}, None),
    ],
)
@pytest.mark.sampled
def test_what_both_accounts_say_has_to_agree(
    first: dict[str, str | None], second: dict[str, str | None], refusal: str | None, eva: Household, write: Write
) -> None:
    for name, said in (("1", first), ("2", second)):
        eva.bring(write(f"{name}.sta", mt940(name, ("0102", "C", f"{name},00", "x"), closing=f"{name}0,00")))
        eva.services.everybody.execute(
            "UPDATE accounts SET iban = $2, kind = $3 WHERE stable_key = $1", name, said["iban"], said["kind"]
        )
    before = [(each.id, each.balance) for each in accounts.every(eva.services.everybody, eva.user.id)]
    if refusal is None:
        command(eva, "accounts merge", account=before[0][0], into=before[1][0])
        assert amounts(eva, only(eva).id) == [1, 2]
        return
    (one, _), (other, _) = before
    for source, target in ((one, other), (other, one)):
        with pytest.raises(CommandError, match=refusal):
            command(eva, "accounts merge", account=source, into=target)
    assert [(each.id, each.balance) for each in accounts.every(eva.services.everybody, eva.user.id)] == before


@pytest.mark.requirement("accounts.merged")
def test_a_merge_is_said_before_and_taken_back_with_what_came_since(eva: Household, write: Write) -> None:
    eva.bring(write("a.csv", JANUARY))
    eva.bring(write("a.sta", THE_SAME))
    csv_account, target = accounts.every(eva.services.everybody, eva.user.id)
    command(eva, "accounts show", account=target.id, is_hidden=False)
    command(eva, "accounts rename", account=csv_account.id, name="Mine")
    command(eva, "accounts hide", account=csv_account.id, is_hidden=True)
    before = eva.rows("transactions")
    eva.lines.clear()
    command(eva, "accounts merge", account=csv_account.id, into=target.id, is_dry_run=True)
    (plan,) = eva.lines
    assert plan.startswith(f"Merge Mine into {target.iban}: 3 bookings would go there; 3 of them are in both")
    assert eva.rows("transactions") == before
    with pytest.raises(CommandError, match=r"Merged accounts: none\."):
        command(eva, "accounts separate", account="Mine")
    command(eva, "accounts merge", account=csv_account.id, into=target.id)
    with pytest.raises(CommandError, match=rf"Merged accounts: {csv_account.id} \(Mine\)\."):
        command(eva, "accounts separate", account="Yours")
    command(eva, "accounts separate", account="Mine")
    assert eva.rows("transactions") == before
    mine = accounts.resolve(eva.services.everybody, eva.user.id, csv_account.id)
    assert (mine.name, mine.is_hidden) == ("Mine", True)
    command(eva, "accounts merge", account=csv_account.id, into=target.id)
    eva.bring(write("b.csv", JANUARY + "2026-02-01,Someone,,Income,four,40.00\n"))
    assert amounts(eva, target.id) == [10, 20, 30, 40]
    command(eva, "accounts separate", account=csv_account.id)
    assert amounts(eva, csv_account.id) == [10, 20, 30, 40]
    assert amounts(eva, target.id) == [10, 20, 30]
    eva.bring(write("c.csv", JANUARY + "2026-02-02,Someone,,Income,five,50.00\n"))
    assert amounts(eva, csv_account.id) == [10, 20, 30, 40, 50]
    assert amounts(eva, target.id) == [10, 20, 30]


@pytest.mark.requirement("accounts.merged")
@pytest.mark.long
def test_what_was_merged_into_an_account_goes_with_it_when_it_is_separated(eva: Household, write: Write) -> None:
    for number in "123":
        eva.bring(write(f"{number}.sta", mt940(number, ("0102", "C", f"{number},00", "x"))))
    ids = [each.id for each in accounts.of_user(eva.services.everybody, eva.user.id)]
    command(eva, "accounts merge", account="1", into="2")
    command(eva, "accounts merge", account="2", into="3")
    command(eva, "accounts separate", account=ids[1])
    assert [amounts(eva, each) for each in ids] == [[], [1, 2], [3]]
    command(eva, "accounts separate", account=ids[0])
    assert [amounts(eva, each) for each in ids] == [[1], [2], [3]]


@pytest.mark.requirement("accounts.merged")
@pytest.mark.long
def test_what_was_merged_into_an_account_follows_it_into_the_next(eva: Household, write: Write) -> None:
    first, second, third = (
        write(f"{number}.sta", mt940(number, ("0102", "C", f"{number},00", "x"))) for number in "123"
    )
    for path in (first, second, third):
        eva.bring(path)
    command(eva, "accounts merge", account="1", into="2")
    command(eva, "accounts merge", account="2", into="3")
    for path in (first, second, third):
        eva.bring(path)
    assert names(eva) == ["3"]
    assert amounts(eva) == [1, 2, 3]


@pytest.mark.requirement("accounts.merged")
def test_an_older_account_takes_its_balances_along_when_it_is_separated_and_deleted_it_leaves_none(
    eva: Household, write: Write
) -> None:
    for name, amount in (("1", "10,00"), ("2", "20,00")):
        eva.bring(write(f"{name}.sta", mt940(name, ("0102", "C", amount, "x"), closing=amount)))
    eva.as_from_an_older_version()
    one, two = (each.id for each in accounts.every(eva.services.everybody, eva.user.id))
    command(eva, "accounts merge", account=one, into=two)
    command(eva, "accounts separate", account=one)
    balances = {each.id: each.balance for each in accounts.every(eva.services.everybody, eva.user.id)}
    assert balances == {one: 10, two: 20}
    command(eva, "accounts merge", account=one, into=two)
    command(eva, "accounts delete", account=two)
    assert eva.rows("earlier_statements") == []


@pytest.mark.requirement("accounts.deleted")
@pytest.mark.parametrize("is_older", [False, True])
def test_a_deleted_account_is_gone_and_comes_back_with_its_next_import(
    eva: Household, write: Write, is_older: bool
) -> None:
    made = eva.bring(write("a.csv", JANUARY))
    if is_older:
        eva.as_from_an_older_version()
    before = eva.state(with_times=False)
    command(eva, "accounts delete", account="N26")
    assert not any(eva.state().values())
    with pytest.raises(CommandError, match="Nothing of this import can be taken back"):
        command(eva, "imports undo", import_id=made)
    eva.bring(write("a.csv", JANUARY))
    assert eva.state(with_times=False) == before


@pytest.mark.requirement("accounts.resolve")
def test_an_account_that_is_not_there_or_not_the_only_one_of_its_name_is_not_guessed(
    eva: Household, write: Write
) -> None:
    eva.bring(write("a.csv", JANUARY))
    eva.bring(write("b.csv", JANUARY), connection="Tom")
    with pytest.raises(CommandError, match="no account with this id or name"):
        command(eva, "accounts delete", account="Tom")
    with pytest.raises(CommandError, match="Several accounts"):
        command(eva, "accounts delete", account="N26")


@pytest.mark.requirement("import.anonymous")
def test_a_file_that_names_no_account_goes_where_its_bookings_are(eva: Household, write: Write) -> None:
    eva.bring(write("a.csv", JANUARY))
    eva.bring(write("a.csv", JANUARY))
    eva.bring(write("b.csv", JANUARY + "2026-02-01,Someone,,Income,four,40.00\n"))
    assert names(eva) == ["N26"]
    assert amounts(eva) == [10, 20, 30, 40]


@pytest.mark.requirement("import.anonymous")
def test_a_file_of_a_partner_is_refused_where_nobody_can_be_asked(eva: Household, write: Write) -> None:
    eva.bring(write("eva.csv", JANUARY))
    partners = write("tom.csv", csv(("2026-01-02", "10.00", "one"), ("2026-01-10", "7.00", "another")))
    with pytest.raises(CommandError, match="1 of 1 file refused"):
        eva.bring(partners)
    assert "does not say which account it is about" in eva.lines[-1]
    assert "--account" in eva.lines[-1]
    assert amounts(eva) == [10, 20, 30]


@pytest.mark.requirement("import.anonymous")
def test_a_file_that_lacks_most_of_what_an_account_has_of_its_days_is_not_of_that_account(
    eva: Household, write: Write
) -> None:
    pocket_money = [(f"2026-01-{day:02}", "5.00", "pocket money") for day in (2, 9, 16)]
    others = [(f"2026-01-{day:02}", f"-{day}.00", f"shop {day}") for day in range(3, 7)]
    eva.bring(write("anna.csv", csv(*pocket_money, *others)))
    with pytest.raises(CommandError, match="1 of 1 file refused"):
        eva.bring(write("ben.csv", csv(*pocket_money, ("2026-01-17", "-8.00", "comic"))))
    assert "does not say which account it is about" in eva.lines[-1]
    assert amounts(eva) == [-6, -5, -4, -3, 5, 5, 5]


@pytest.mark.requirement("import.anonymous")
@pytest.mark.long
def test_a_person_is_asked_whose_file_it_is_and_may_say_that_it_is_another_account(
    eva: Household, write: Write
) -> None:
    eva.bring(write("eva.csv", JANUARY))
    eva.notes.clear()
    eva.answers = [1]
    eva.bring(write("tom.csv", csv(("2026-01-10", "7.00", "another"))))
    mine = accounts.of_user(eva.services.everybody, eva.user.id)[0]
    assert eva.notes[1:] == [f"N26, N26 ({mine.id})", "an account that is not there yet"]
    assert names(eva) == ["N26", "N26 2"]
    eva.answers = [0, 1, 2]
    for number in (1, 2, 3):
        eva.bring(write(f"{number}.csv", csv((f"2026-02-0{number}", f"{number}.00", "more"))))
    assert names(eva) == ["N26", "N26 2", "N26 3"]
    assert [amounts(eva, account.id) for account in accounts.of_user(eva.services.everybody, eva.user.id)] == [
        [1, 10, 20, 30],
        [2, 7],
        [3],
    ]


@pytest.mark.requirement("accounts.chosen")
@pytest.mark.long
def test_a_file_goes_to_the_account_that_is_chosen_and_its_bookings_count_once(eva: Household, write: Write) -> None:
    eva.bring(write("a.sta", THE_SAME))
    eva.bring(write("a.csv", JANUARY), account=only(eva).iban)
    assert amounts(eva) == [10, 20, 30]
    eva.bring(write("other.sta", mt940("77", ("0301", "C", "1,00", "x"))), account=only(eva).id)
    eva.bring(write("later.sta", mt940("77", ("0302", "C", "2,00", "x"))))
    assert amounts(eva, only(eva).id) == [1, 2, 10, 20, 30]


@pytest.mark.requirement("accounts.chosen")
def test_a_file_of_another_currency_or_of_several_accounts_goes_to_no_chosen_one(eva: Household, write: Write) -> None:
    eva.bring(write("a.csv", JANUARY))
    one = mt940("1234", ("0102", "C", "1,00", "x"))
    for name, content, reason in (
        ("usd.sta", one.replace("EUR", "USD"), "The file is in USD, the account in EUR."),
        ("two.sta", one + mt940("5678", ("0102", "C", "1,00", "x")), "The file is about several accounts"),
    ):
        with pytest.raises(CommandError, match="refused"):
            eva.bring(write(name, content), account="N26")
        assert reason in eva.lines[-1]
    assert len(amounts(eva)) == 3


@pytest.mark.requirement("accounts.overlap")
@pytest.mark.long
def test_a_file_whose_bookings_stand_in_another_account_is_asked_about(eva: Household, write: Write) -> None:
    eva.bring(write("a.csv", JANUARY))
    assert eva.notes == []
    eva.bring(write("a.sta", THE_SAME))
    first, second = accounts.every(eva.services.everybody, eva.user.id)
    assert (first.same_as, second.same_as, names(eva)) == (None, first.id, ["N26"])
    asked = "Is this the same account as N26? Its transactions are there too. It counts once you have said so."
    assert f"  {second.iban}: {asked}" in eva.lines
    answers = [
        f"bankdata accounts {each} --user eva" for each in (f"merge {second.id} {first.id}", f"show {second.id}")
    ]
    assert eva.notes == [
        f"{second.iban} waits for your answer. The same account: {answers[0]}. Another one: {answers[1]}."
    ]
    command(eva, "accounts show", account=second.id, is_hidden=False)
    eva.notes.clear()
    eva.bring(write("a.sta", THE_SAME))  # who has said that it is another one is not asked again
    eva.bring(write("half.sta", mt940("1", ("0102", "C", "10,00", "x"), ("0103", "C", "5,00", "y"))))
    eva.bring(write("empty.sta", mt940("2")))
    assert eva.notes == []
    assert len(names(eva)) == 4
