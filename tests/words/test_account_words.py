"""What a person has said of accounts and recurring payments, out of one store and into another."""

import json
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from analytics.records import AccountRecord, TransactionRecord
from auth.scopes import ALL_SCOPES
from handlers.work.sync.statement_files import keep_account_words
from storage.annotations import portable
from storage.annotations.word_lines import InvalidWords
from storage.database import Transaction, put_row
from storage.importing import derivation
from tests.checked_commits import change
from tests.explanations.conftest import Holder, Service
from tests.words.conftest import GIRO, booked, by_name, rows_of, writer
from tests.words.test_everything_exported import EVERYTHING, brought
from tests.words.test_words_portable import exported

CASH = AccountRecord(stable_key="cash", currency="EUR", name="Cash")
MONTHS = range(5, 12)  # of 2026
SAID = ("GIRO is mine", 500.0)


def monthly(name: str, amount: str, day: int) -> list[TransactionRecord]:
    return [
        TransactionRecord(
            booking_date=date(2026, month, day), amount=Decimal(amount), currency="EUR", counterpart_name=name
        )
        for month in MONTHS
    ]


def brings(holder: Holder) -> None:
    """The statements of both accounts: three payments that come every month, and cash."""
    holder.bring(GIRO, [*monthly("Netflix", "-9.99", 3), *monthly("Gym", "-30", 5), *monthly("Rent", "-700", 1)])
    holder.bring(CASH, monthly("Till", "-1", 9))


def says(holder: Holder) -> None:
    """Something of each kind."""
    client = writer(holder)
    giro, cash = holder.account_ids()
    ids = {each["merchantName"]: each["id"] for each in payments(holder)}
    for method, path, body in (
        ("PATCH", f"/accounts/{giro}", {"name": SAID[0], "creditLine": SAID[1]}),
        ("POST", f"/accounts/{giro}/balance", {"date": "2026-11-05", "amount": 100.5}),
        ("POST", f"/accounts/{giro}/balance", {"date": "2026-10-05", "amount": 840.49}),
        ("POST", f"/subscriptions/{ids['Netflix']}/confirmation", {"confirmation": "confirmed"}),
        ("POST", f"/subscriptions/{ids['Gym']}/confirmation", {"confirmation": "dismissed"}),
        (
            *("POST", "/subscriptions/added"),
            {"name": "School", "amount": 45, "frequency": "monthly", "nextExpected": "2026-12-01", "accountId": giro},
        ),
        ("PATCH", f"/accounts/{cash}", {"isHidden": True}),
    ):
        answer = client.request(method, path, json=body)
        assert answer.is_success, (path, answer.text)


def payments(holder: Holder) -> list[dict[str, Any]]:
    asked = {"status": "all", "accountIds": ",".join(holder.account_ids())}
    found: list[dict[str, Any]] = holder.get("/subscriptions/details", **asked)["subscriptions"]
    return found


def known(holder: Holder) -> dict[str, Any]:
    """What is served of it, without ids, which a new store chooses."""
    hidden = writer(holder).get("/accounts/hidden?withShown=true").json()["accounts"]
    shown = holder.get("/accounts")["accounts"]
    return {
        "accounts": sorted((each["accountName"], each["creditLine"], each["isHidden"]) for each in hidden),
        "balances": [each["balance"] for each in shown],
        "payments": sorted(
            (each["merchantName"], each["confirmation"], each["nextExpected"]) for each in payments(holder)
        ),
    }


def read(holder: Holder, lines: Sequence[str]) -> tuple[int, int]:
    """How many of these lines were taken over, and how many are of what is not there."""
    services = holder.service.services
    taken = services.change(
        holder.user.id,
        lambda session: keep_account_words(session, "\n".join(lines), user=holder.user, clock=services.clock),
    )
    return taken.count, taken.absent


@pytest.mark.requirement("words.portable")
def test_what_was_said_of_accounts_and_payments_goes_into_a_store_that_has_them(
    service: Service, holder: Holder
) -> None:
    brings(holder)
    says(holder)
    lines, other = exported(holder), service.newcomer()
    kinds = [json.loads(line)["kind"] for line in lines]
    assert kinds == ["account", "account", "balance", "balance", "recurring", "recurring", "addedRecurring"]
    assert read(holder, lines) == (0, 0)
    assert read(other, lines) == (0, 7)
    brings(other)
    assert read(other, lines) == (8, 0)  # a name and a credit line are two
    assert known(other) == known(holder)
    assert read(other, lines) == (0, 0)
    assert known(other)["balances"] == [100.5]


@pytest.mark.requirement("words.portable")
def test_what_is_said_here_stays(service: Service, holder: Holder) -> None:
    brings(holder)
    says(holder)
    lines, other = exported(holder), service.newcomer()
    brings(other)
    client, (giro, _cash) = writer(other), other.account_ids()
    ids = {each["merchantName"]: each["id"] for each in payments(other)}
    client.patch(f"/accounts/{giro}", json={"name": "Here", "creditLine": 1})
    client.post(f"/accounts/{giro}/balance", json={"date": "2026-11-05", "amount": 7})
    client.post(f"/subscriptions/{ids['Netflix']}/confirmation", json={"confirmation": "dismissed"})
    assert read(other, lines) == (4, 0)  # the earlier balance, the gym, the school, and cash that is hidden
    found = known(other)
    assert found["accounts"] == [("Cash", None, True), ("Here", 1.0, False)]
    assert found["balances"] == [7.0]
    assert ("Netflix", "dismissed") in [each[:2] for each in found["payments"]]


@pytest.mark.requirement("words.exports")
def test_everything_in_one_file_has_it_and_an_app_that_may_not_say_it_brings_none(
    service: Service, holder: Holder
) -> None:
    brings(holder)
    says(holder)
    content = writer(holder).get("/transactions/export", params=EVERYTHING).content
    other, narrow = service.newcomer(), service.newcomer()
    report = brought(other, content)
    assert report["warnings"][1:] == [
        "What you have said of accounts and recurring payments that are not here yet was left out (1). Import the file"
        " again when they are here."
    ]  # of cash, which is hidden, the file has no bookings
    german = writer(other).get(f"/imports/{report['importId']}", headers={"Accept-Language": "de"}).json()["warnings"]
    assert german == [
        "Sie enthält auch Regeln, Korrekturen und Ähnliches. Was Sie hier noch nicht gesagt haben, wird übernommen.",
        "Was Sie zu Konten und wiederkehrenden Zahlungen gesagt haben, die hier noch fehlen, wurde ausgelassen (1)."
        " Importieren Sie die Datei noch einmal, sobald es sie gibt.",
    ]
    same = known(other)
    assert same["accounts"] == [("GIRO is mine", 500.0, False)]
    assert same["payments"] == known(holder)["payments"]
    without = tuple(set(ALL_SCOPES) - {"write:accounts"})
    left = "It also holds rules, corrections and the like, which this app may not bring."
    assert left in brought(narrow, content, without)["warnings"]
    assert known(narrow)["accounts"] == [("GIRO is mine", None, False)]  # which its bookings say
    assert known(narrow)["payments"] == same["payments"]


@pytest.mark.requirement("words.exports")
@pytest.mark.parametrize(
    ("missing", "kinds"),
    [
        ("write:accounts", {"recurring", "addedRecurring"}),
        ("read:cashflow", {"account", "balance", "annotation"}),
    ],
)
def test_an_app_gets_of_everything_what_it_may_read_elsewhere(holder: Holder, missing: str, kinds: set[str]) -> None:
    brings(holder)
    till = by_name(holder)["Till"]["id"]
    assert writer(holder).patch(f"/transactions/{till}/annotation", json={"note": "one"}).is_success
    says(holder)
    client = writer(holder, sorted(set(ALL_SCOPES) - {missing}))
    content = client.get("/transactions/export", params=EVERYTHING).text
    assert ('"note": "one"' in content) is (missing != "write:accounts"), "its account is hidden"
    assert {json.loads(line).get("kind") for line in content.splitlines()} - {None} == kinds


@pytest.mark.requirement("words.exports")
def test_a_correction_of_a_payee_of_a_hidden_account_is_told_as_that_account_is(holder: Holder) -> None:
    brings(holder)
    till = by_name(holder)["Till"]["id"]
    assert writer(holder).post("/corrections", json={"transactionId": till, "category": "HEALTH"}).is_success
    without = writer(holder, sorted(set(ALL_SCOPES) - {"write:accounts"}))
    assert len(without.get("/corrections").json()["corrections"]) == 1
    says(holder)  # and hides its account
    assert without.get("/corrections").json()["corrections"] == []
    assert "till" not in without.get("/transactions/export", params=EVERYTHING).text.casefold()
    assert len(writer(holder).get("/corrections").json()["corrections"]) == 1


@pytest.mark.requirement("words.portable")
def test_a_credit_line_that_is_brought_is_looked_at_like_one_that_is_said(service: Service, holder: Holder) -> None:
    brings(holder)
    says(holder)
    other, database = service.newcomer(), service.services.everybody
    brings(other)
    asked = "SELECT due_on FROM notice_looks WHERE user_id = $1"
    put_row(database, "notice_looks", ["user_id"], user_id=other.user.id, accounts="{}", is_past=False, life="")
    assert read(other, [line for line in exported(holder) if '"creditLine"' in line]) == (2, 0)
    assert [row["due_on"] for row in database.rows(asked, other.user.id)] == [service.services.clock.today()]


@pytest.mark.requirement("words.portable")
def test_lines_that_are_none_of_these_are_refused(holder: Holder) -> None:
    brings(holder)
    about = {"account": {"id": holder.account_ids()[0]}}
    for line in (
        {"kind": "account", "name": "x\u0007"},
        {"kind": "account", "name": " "},
        {"kind": "account", "name": "x" * 141},
        {"kind": "account", "name": 5},
        {"kind": "account", "creditLine": "-1"},
        {"kind": "account", "creditLine": "0.001"},
        {"kind": "balance", "date": "2026-11-31", "amount": "1"},
        {"kind": "balance", "date": "2026-11-03", "amount": "1.001"},
        {"kind": "balance", "date": "2026-11-03", "amount": "1e15"},
        {"kind": "balance", "date": "2026-11-03"},
        {"kind": "recurring", "id": "x", "confirmation": "confirmed", "at": "2026-11-03"},
        {"kind": "addedRecurring", "name": "ab"},
    ):
        with pytest.raises(InvalidWords, match=r"^line 2: "):
            read(holder, ["", json.dumps(about | line)])


@pytest.mark.requirement("words.portable")
def test_an_added_payment_has_the_bounds_of_one_added_here(holder: Holder) -> None:
    brings(holder)
    says(holder)
    line = json.loads(exported(holder)[-1])
    for changed in (
        {"name": "ab"},
        {"name": "x" * 201},
        {"amount": "0"},
        {"amount": "-1"},
        {"amount": "0.001"},
        {"direction": "sideways"},
        {"frequency": "daily"},
        {"nextDay": "soon"},
    ):
        with pytest.raises(InvalidWords, match=r"^line 1: "):
            read(holder, [json.dumps(line | changed)])
    assert read(holder, [json.dumps(line)]) == (0, 0)
    assert read(holder, [json.dumps({**line, "name": "abc"})]) == (1, 0)


@pytest.mark.requirement("words.portable")
def test_balances_that_were_brought_are_taken_back_like_those_said_here(service: Service, holder: Holder) -> None:
    brings(holder)
    says(holder)
    lines, other = exported(holder), service.newcomer()
    brings(other)
    read(other, lines)
    client = writer(other)
    (said,) = [each for each in client.get("/imports").json()["imports"] if each["source"] == "Said by you"]
    assert client.delete(f"/imports/{said['importId']}").is_success
    assert known(other)["balances"] == [None]


def unnamed(holder: Holder, *amounts: str) -> str:
    """The id of an account without an IBAN, of a file that names none: its key is that of every such file."""
    before, database = set(holder.account_ids()), holder.service.services.everybody
    record = AccountRecord(stable_key=f"CSV {len(before)}", currency="EUR")
    holder.bring(record, [booked(f"{day:02}", amount, "Till") for day, amount in enumerate(amounts, start=1)])
    (added,) = set(holder.account_ids()) - before
    sql = "UPDATE accounts SET stable_key = 'CSV' WHERE user_id = $1 AND id = $2"
    change(database, holder.user.id, sql, holder.user.id, added)
    return added


@pytest.mark.requirement("words.portable")
def test_what_is_said_of_an_account_without_number_finds_it_by_its_bookings(service: Service, holder: Holder) -> None:
    card = unnamed(holder, "-1", "-2", "-3")
    client = writer(holder)
    client.patch(f"/accounts/{card}", json={"name": "Visa", "creditLine": 1000})
    client.post(f"/accounts/{card}/balance", json={"date": "2026-11-05", "amount": -80})
    note = by_name(holder)["Till"]["id"]
    client.patch(f"/transactions/{note}/annotation", json={"note": "one"})
    lines, other, both = exported(holder), service.newcomer(), service.newcomer()
    pig = unnamed(other, "5", "6")
    assert read(other, lines) == (0, 2)
    assert known(other)["accounts"] == [("CSV", None, False)]
    there = [unnamed(both, "-1", "-2", "-3"), unnamed(both, "5", "6")]
    assert read(both, lines) == (3, 0)
    named = {each["id"]: each["accountName"] for each in both.get("/accounts")["accounts"]}
    assert [named[each] for each in there] == ["Visa", "CSV"]
    words = [json.loads(line) for line in lines]
    assert pig not in json.dumps(words)
    for target in (both, other):
        import_lines(target, lines)
    assert [row["note"] for row in rows_of(both, include="annotation") if row["note"]] == ["one"]
    assert [row["note"] for row in rows_of(other, include="annotation") if row["note"]] == []


@pytest.mark.requirement("words.exports")
def test_everything_of_two_accounts_without_number_comes_back_to_each(service: Service, holder: Holder) -> None:
    first, second = unnamed(holder, "-1", "-2"), unnamed(holder, "5", "6")
    client = writer(holder)
    client.patch(f"/accounts/{first}", json={"creditLine": 100})
    client.post(f"/accounts/{second}/balance", json={"date": "2026-11-05", "amount": 11})
    for row in rows_of(holder):
        client.patch(f"/transactions/{row['id']}/annotation", json={"note": f"{row['amount']:.0f}"})
    accounts = {"accountIds": f"{first},{second}"}
    content = client.get("/transactions/export", params={**EVERYTHING, **accounts}).content
    other = service.newcomer()
    report = brought(other, content)
    assert not [each for each in report["warnings"] if "left out" in each], report
    rows = rows_of(other, include="annotation")
    assert {row["note"] for row in rows} == {"-1", "-2", "5", "6"}
    assert all(row["note"] == f"{row['amount']:.0f}" for row in rows)
    assert sorted(each["balance"] or 0 for each in other.get("/accounts")["accounts"]) == [0, 11]
    assert sorted(each[1] or 0 for each in known(other)["accounts"]) == [0, 100]


@pytest.mark.requirement("words.portable")
def test_a_day_of_a_balance_is_one_until_today(holder: Holder) -> None:
    brings(holder)
    about = {"kind": "balance", "account": {"id": holder.account_ids()[0], "iban": GIRO.iban, "currency": "EUR"}}
    for day in ("1899-12-31", "2026-11-21"):
        with pytest.raises(InvalidWords, match=r"^line 1: not a day until today"):
            read(holder, [json.dumps({**about, "date": day, "amount": "1"})])
    assert read(holder, [json.dumps({**about, "date": "2026-11-20", "amount": "1"})]) == (1, 0)
    with pytest.raises(InvalidWords, match=r"^line 1: cannot be read"):
        read(holder, [json.dumps({**about, "account": None, "date": "2026-11-20", "amount": "1"})])


@pytest.mark.requirement("words.portable")
def test_a_note_on_a_booking_of_a_merged_account_goes_into_another_store(service: Service, holder: Holder) -> None:
    brings(holder)
    giro, cash = holder.account_ids()
    till = by_name(holder)["Till"]["id"]
    assert writer(holder).patch(f"/transactions/{till}/annotation", json={"note": "one"}).is_success
    assert writer(holder).post(f"/accounts/{cash}/merge", json={"into": giro}).is_success
    lines, other = exported(holder), service.newcomer()
    other.bring(GIRO, monthly("Till", "-1", 9))
    import_lines(other, lines)
    assert [row["note"] for row in rows_of(other, include="annotation") if row["note"]] == ["one"]


@pytest.mark.requirement("words.portable")
def test_a_category_that_was_renamed_here_is_the_one_that_an_export_means(service: Service, holder: Holder) -> None:
    brings(holder)
    client, other = writer(holder), service.newcomer()
    own = client.post("/categories", json={"name": "Cinema", "category": "DINING"}).json()["id"]
    till = by_name(holder)["Till"]["id"]
    client.patch(f"/transactions/{till}/annotation", json={"ownCategoryId": own})
    aim = {"ownCategoryId": own, "amount": 40, "period": "month", "from": "2026-11"}
    assert client.put("/targets", json=aim).is_success
    accounts = {"accountIds": ",".join(holder.account_ids())}
    content = client.get("/transactions/export", params={**EVERYTHING, **accounts}).content
    brought(other, content)

    def own_here() -> list[dict[str, Any]]:
        own: list[dict[str, Any]] = writer(other).get("/categories").json()["own"]
        return own

    (there,) = own_here()
    writer(other).patch(f"/categories/{there['id']}", json={"name": "Kino"})
    brought(other, content)
    assert [each["name"] for each in own_here()] == ["Kino"]
    assert len(writer(other).get("/targets?month=2026-11").json()["targets"]) == 1


def import_lines(holder: Holder, lines: Sequence[str]) -> None:
    services = holder.service.services
    text, now = "\n".join(lines), services.clock.now()

    def work(session: Transaction) -> None:
        portable.read(session, holder.user.id, text, now=now)
        derivation.apply_rules(session, holder.user.id, now=now)

    services.change(holder.user.id, work)
