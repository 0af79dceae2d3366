"""The rows behind the figures, as a client reads them; every answer is held against the contract."""

import json
from datetime import date
from decimal import Decimal
from typing import Any

import orjson
import pytest

from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from handlers.operations.explanations import MONTH_NOT_FOUND
from handlers.web.app import CONTRACT_FILE
from tests.explanations.conftest import Holder, Service, body_of

CONTRACT: dict[str, Any] = orjson.loads(CONTRACT_FILE.read_bytes())
EXPLANATIONS = {
    "/cashflow/{month}/transactions": ("read:cashflow", "200 400 401 403 404 429 500 503"),
    "/snapshot/categories/{category}/transactions": ("read:accounts", "200 400 401 403 404 429 500 503"),
    "/subscriptions/details": ("read:cashflow", "200 400 401 403 429 500 503"),
    "/subscriptions/{id}": ("read:cashflow", "200 400 401 403 404 429 500 503"),
    "/transactions/{id}/explanation": ("read:transactions", "200 400 401 403 404 429 500 503"),
}
GIRO = AccountRecord(stable_key="DE02120300000000202051", iban="DE02120300000000202051", currency="EUR")
SAVINGS = AccountRecord(stable_key="DE88100900001234567892", iban="DE88100900001234567892", currency="EUR")
FOREIGN = "AT611904300234573201"


def booked(day: str, amount: str, name: str | None = None, **further: Any) -> TransactionRecord:
    said = {"currency": "EUR", "counterpart_name": name, **further}
    return TransactionRecord(booking_date=date.fromisoformat(day), amount=Decimal(amount), **said)


def judged(rows: list[dict[str, Any]]) -> list[tuple[str, float, str | None, str | None, float]]:
    keys = ("bookingDate", "amount", "countedAs", "leftOut", "countedAmount")
    return sorted((row[keys[0]][:10], *(row[key] for key in keys[1:])) for row in rows)


@pytest.mark.requirement("explanations.cashflow")
def test_the_rows_of_a_month_say_what_they_count_as_or_why_they_do_not(holder: Holder) -> None:
    holder.bring(SAVINGS, [booked("2026-10-03", "200.00", counterpart_iban=GIRO.iban)])
    holder.bring(
        GIRO,
        [
            booked("2026-09-30", "-1.00"),
            booked("2026-10-01", "2500.00", "Employer"),
            booked("2026-10-02", "-200.00", counterpart_iban=SAVINGS.iban),
            booked("2026-10-05", "-12.99", "Shop"),
            booked("2026-10-06", "-70.00", counterpart_iban=SAVINGS.iban),  # the other leg is not there
            booked("2026-10-31", "-5.00", "Shop", status="pending"),
            booked("2026-11-01", "-2.00"),
        ],
    )
    everything = ",".join(holder.account_ids())
    told = holder.get("/cashflow/2026-10/transactions", accountIds=everything)
    assert judged(told["transactions"]) == [
        ("2026-10-01", 2500.0, "income", None, 2500.0),
        ("2026-10-02", -200.0, None, "transfer", 0.0),
        ("2026-10-03", 200.0, None, "transfer", 0.0),
        ("2026-10-05", -12.99, "expenses", None, -12.99),
        ("2026-10-06", -70.0, "expenses", None, -70.0),
        ("2026-10-31", -5.0, None, "pending", 0.0),
    ]
    figures = {"month": "2026-10", "income": 2500.0, "expenses": 82.99, "net": 2417.01, "currency": "EUR"}
    assert {key: value for key, value in told.items() if key != "transactions"} == figures
    days = [(row["bookingDate"], row["id"]) for row in told["transactions"]]
    assert days == sorted(days, reverse=True)

    giro = holder.get("/cashflow/2026-10/transactions", accountIds=holder.account_ids()[1])
    assert (giro["expenses"], [row for row in giro["transactions"] if row["leftOut"] == "transfer"]) == (282.99, [])


@pytest.mark.requirement("explanations.cashflow")
def test_an_adjusting_entry_is_shown_and_does_not_count(holder: Holder) -> None:
    def statement(number: int, opening: str, closing: str) -> StatementRecord:
        return StatementRecord(
            opening=Decimal(opening),
            opening_date=date(2026, 10, number),
            closing=Decimal(closing),
            closing_date=date(2026, 10, number),
            is_authoritative=True,
        )

    holder.bring(GIRO, [booked("2026-10-02", "-1.00")], statement(2, "100.00", "99.00"))
    holder.bring(GIRO, [booked("2026-10-08", "-2.00")], statement(8, "79.00", "77.00"))
    told = holder.get("/cashflow/2026-10/transactions")
    assert judged(told["transactions"]) == [
        ("2026-10-02", -1.0, "expenses", None, -1.0),
        ("2026-10-07", -20.0, None, "adjusting_entry", 0.0),
        ("2026-10-08", -2.0, "expenses", None, -2.0),
    ]
    assert told["expenses"] == 3.0
    (entry,) = [row for row in told["transactions"] if row["leftOut"]]
    why = holder.get(f"/transactions/{entry['id']}/explanation")
    assert why["type"]["rule"] == why["category"]["rule"] == "adjusting-entry"
    assert why["merchantName"] == {"value": None, "rule": None, "reason": "No rule gave a value."}


@pytest.mark.requirement("explanations.snapshot")
def test_refunds_count_as_far_as_there_are_expenses_left(holder: Holder) -> None:
    holder.bring(
        GIRO,
        [
            booked("2026-10-21", "-999.00", "IKEA"),  # the day before the 30 days
            booked("2026-10-22", "-50.00", "Decathlon", swift_code="NDDT"),
            booked("2026-11-02", "30.00", "IKEA"),
            booked("2026-11-03", "30.00", "IKEA"),
            booked("2026-11-04", "7.00", "Zalando"),
            booked("2026-11-05", "-9.00", "IKEA", status="pending"),
        ],
    )
    told = holder.get("/snapshot/categories/SHOPPING/transactions")
    assert judged(told["transactions"]) == [
        ("2026-10-22", -50.0, "expenses", None, -50.0),
        ("2026-11-02", 30.0, "refund", None, 30.0),
        ("2026-11-03", 30.0, "refund", None, 20.0),
        ("2026-11-04", 7.0, None, "income", 0.0),
        ("2026-11-05", -9.0, None, "pending", 0.0),
    ]
    assert (told["amount"], told["percentage"], told["totalExpenses"]) == (0.0, 0, 0.0)
    assert (told["since"][:10], told["until"][:10]) == ("2026-10-22", "2026-11-20")


@pytest.mark.requirement("explanations.snapshot")
def test_a_category_without_bookings_is_empty(holder: Holder) -> None:
    told = holder.get("/snapshot/categories/RENT/transactions")
    assert (told["amount"], told["percentage"], told["transactions"]) == (0.0, 0, [])


@pytest.mark.requirement("explanations.errors")
@pytest.mark.parametrize(
    ("month", "is_known"),
    [
        ("2026-11", True),
        ("2026-12", False),  # still to come
        ("2016-12", True),  # the 120th month back: a cashflow lists it, empty
        ("2016-11", False),
        ("2026-13", False),
        ("2026-00", False),
        ("0000-01", False),
        ("9999-12", False),
        ("2026-1", False),
        ("2026-011", False),
        ("２０２６-10", False),
        ("november", False),
    ],
)
def test_a_month_that_no_cashflow_lists_is_not_found(holder: Holder, month: str, is_known: bool) -> None:
    answer = holder.client.get(f"/cashflow/{month}/transactions")
    if is_known:
        assert answer.status_code == 200
    else:
        assert (answer.status_code, answer.json()) == (404, {"error": MONTH_NOT_FOUND})


@pytest.mark.requirement("explanations.errors")
def test_a_month_older_than_ten_years_is_known_from_the_first_booking_on(holder: Holder) -> None:
    holder.bring(GIRO, [booked("2010-05-31", "-3.00"), booked("2026-11-01", "-2.00")])
    assert holder.get("/cashflow/2010-05/transactions")["expenses"] == 3.0
    assert holder.get("/cashflow/2010-06/transactions")["transactions"] == []
    assert holder.client.get("/cashflow/2010-04/transactions").status_code == 404


@pytest.mark.requirement("explanations.errors")
@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/snapshot/categories/GAMES/transactions", "Category not found"),
        ("/snapshot/categories/rent/transactions", "Category not found"),
        ("/subscriptions/sub_0000", "Subscription not found"),
        ("/subscriptions/anything", "Subscription not found"),
        ("/transactions/txn_0000/explanation", "Transaction not found"),
        ("/transactions/%20/explanation", "Transaction not found"),
    ],
)
def test_what_is_unknown_is_not_found_in_one_sentence(holder: Holder, path: str, sentence: str) -> None:
    answer = holder.client.get(path)
    assert (answer.status_code, answer.json()) == (404, {"error": sentence})


@pytest.mark.requirement("decision 19")
def test_a_currency_without_a_rate_blinds_nobody_and_is_named_wherever_it_is_left_out(holder: Holder) -> None:
    def closing(balance: str) -> StatementRecord:
        return StatementRecord(closing=Decimal(balance), closing_date=date(2026, 11, 3), is_authoritative=True)

    gold = AccountRecord(stable_key="gold", currency="XAU")
    marks = booked("2026-11-02", "-5.00", currency="DEM")
    holder.bring(GIRO, [booked("2026-11-02", "-10.00"), marks], closing("100.00"))
    holder.bring(gold, [booked("2026-11-03", "-1.00", currency="XAU")], closing("3.00"))
    both = ",".join(holder.account_ids())

    def told(path: str) -> tuple[Any, str | None]:
        answer = holder.client.get(path, params={"accountIds": both})
        assert answer.status_code == 200
        return answer.json(), answer.headers.get("unconverted-currencies")

    (*_, month), named = told("/cashflow")[0]["cashflow"], told("/cashflow")[1]
    assert (month, named) == ({"month": "2026-11", "income": 0.0, "expenses": 10.0, "net": -10.0}, "DEM, XAU")
    snapshot, named = told("/snapshot")
    assert (snapshot["totalBalance"], snapshot["last30Days"]["totalExpenses"], named) == (100.0, 10.0, "DEM, XAU")
    assert [(each["balance"], each["currency"]) for each in snapshot["accounts"]] == [(100.0, "EUR"), (3.0, "XAU")]
    for path in ("/cashflow/2026-11/transactions", "/snapshot/categories/OTHER/transactions"):
        behind, named = told(path)
        assert (judged(behind["transactions"]), named) == (
            [
                ("2026-11-02", -10.0, "expenses", None, -10.0),
                ("2026-11-02", -5.0, None, "no_rate", 0.0),
                ("2026-11-03", -1.0, None, "no_rate", 0.0),
            ],
            "DEM, XAU",
        )
    assert told("/snapshot/categories/RENT/transactions")[1] == "DEM, XAU"  # totalExpenses lacks them too
    # a month in which nothing of it counts needs no rate, and one account has one currency
    assert told("/cashflow/2026-10/transactions")[1] is None
    alone = holder.get("/cashflow/2026-11/transactions", accountIds=holder.account_ids()[1])
    assert (alone["currency"], alone["expenses"]) == ("XAU", 1.0)


@pytest.mark.requirement("explanations.errors")
def test_a_booking_in_another_currency_than_its_account_is_converted(holder: Holder) -> None:
    holder.bring(GIRO, [booked("2026-11-03", "-10.00"), booked("2026-11-04", "-10.00", currency="CHF")])
    told = holder.get("/cashflow/2026-11/transactions")
    (foreign,) = [row for row in told["transactions"] if row["currency"] == "CHF"]
    assert foreign["countedAmount"] != foreign["amount"]
    assert told["expenses"] == holder.get("/cashflow", months=1)["cashflow"][0]["expenses"]
    assert told["expenses"] == pytest.approx(10 - foreign["countedAmount"])


@pytest.mark.requirement("explanations.errors")
def test_several_accounts_have_to_be_named_and_must_be_ones_own(holder: Holder, demo_service: Service) -> None:
    holder.bring(GIRO, [])
    holder.bring(SAVINGS, [])
    foreign = body_of(demo_service.named("solo"), "/accounts")["accounts"][0]["id"]
    for path in ("/cashflow/2026-11/transactions", "/snapshot/categories/RENT/transactions", "/subscriptions/details"):
        assert holder.client.get(path).status_code == 400
        assert holder.client.get(path, params={"accountIds": foreign}).status_code == 400


@pytest.mark.requirement("explanations.errors")
def test_what_belongs_to_somebody_else_is_not_found(holder: Holder, demo_service: Service) -> None:
    solo = demo_service.named("solo")
    transaction = body_of(solo, "/transactions", perPage=1)["transactions"][0]["id"]
    subscription = body_of(solo, "/subscriptions/details")["subscriptions"][0]["id"]
    for path in (f"/transactions/{transaction}/explanation", f"/subscriptions/{subscription}"):
        assert solo.get(path).status_code == 200
        assert holder.client.get(path).status_code == 404


def monthly(last_month: int, *, skipped: int = 0, last_amount: str = "12.99") -> list[TransactionRecord]:
    return [
        booked(
            f"2026-{month:02}-05",
            f"-{last_amount}" if month == last_month else "-10.99",
            "Netflix",
            creditor_id="NL12ZZZ123456780000",
            mandate_reference="M-1",
            counterpart_iban=FOREIGN,
        )
        for month in range(1, last_month + 1)
        if month != skipped
    ]


@pytest.mark.requirement("explanations.subscriptions")
def test_a_subscription_is_told_from_its_charges(holder: Holder) -> None:
    holder.bring(GIRO, monthly(11, skipped=8))
    (listed,) = holder.get("/subscriptions")["subscriptions"]
    (told,) = holder.get("/subscriptions/details")["subscriptions"]
    assert {key: told[key] for key in listed} == listed
    (whole,) = holder.get("/subscriptions/details", status="current")["subscriptions"]
    assert whole == holder.get(f"/subscriptions/{told['id']}")
    assert told == {key: whole[key] for key in told}
    nowhere_else = {"weekday": None, "secondDayOfMonth": None, "month": None}
    assert told["cadence"] == {"every": 1, "unit": "month", "dayOfMonth": 5, **nowhere_else}
    assert told["intervalMonths"] == 1
    assert [charge["bookingDate"][:7] for charge in told["charges"]] == [
        *("2026-01", "2026-02", "2026-03", "2026-04", "2026-05", "2026-06", "2026-07", "2026-09", "2026-10", "2026-11")
    ]
    assert listed["occurrences"] == sum(charge["isOccurrence"] for charge in told["charges"]) == 5
    assert listed["amount"] == told["charges"][-1]["amount"] == 12.99
    assert told["yearlyCost"] == 155.88
    assert told["missedCharges"] == ["2026-08-05T00:00:00.000Z"]
    assert told["comingCharges"] == ["2026-12-05T00:00:00.000Z"]
    assert (told["firstCharged"][:10], told["nextExpected"][:10]) == ("2026-01-05", "2026-12-05")
    assert [(each["since"][:10], each["amount"], each["change"], each["charges"]) for each in told["priceHistory"]] == [
        ("2026-01-05", 10.99, None, 9),
        ("2026-11-05", 12.99, 2.0, 1),
    ]
    for charge in told["charges"]:
        row = holder.get(f"/transactions/{charge['transactionId']}")
        assert (row["bookingDate"], -row["amount"]) == (charge["bookingDate"], charge["amount"])


@pytest.mark.requirement("explanations.subscriptions")
def test_a_subscription_keeps_its_id_through_further_charges_and_prices(holder: Holder) -> None:
    holder.bring(GIRO, monthly(10, last_amount="10.99"))
    (before,) = holder.get("/subscriptions/details")["subscriptions"]
    holder.bring(GIRO, monthly(11, last_amount="13.49")[-1:])
    after = holder.get(f"/subscriptions/{before['id']}")
    assert (after["amount"], len(after["charges"])) == (13.49, len(before["charges"]) + 1)


@pytest.mark.requirement("explanations.subscriptions")
def test_the_list_of_subscriptions_leads_to_their_ids(holder: Holder) -> None:
    holder.bring(GIRO, monthly(11))
    (account,) = holder.account_ids()
    answer = holder.client.get("/subscriptions", params={"accountIds": account})
    assert answer.headers["link"] == f'</api/v1/subscriptions/details?accountIds={account}>; rel="alternate"'
    assert holder.client.get("/subscriptions").headers["link"] == '</api/v1/subscriptions/details>; rel="alternate"'
    (told,) = holder.client.get(f"http://127.0.0.1:8000{answer.links['alternate']['url']}").json()["subscriptions"]
    assert told["merchantName"] == "Netflix"


@pytest.mark.requirement("explanations.transactions")
def test_a_transaction_is_explained_rule_by_rule(holder: Holder) -> None:
    holder.bring(SAVINGS, [])
    holder.bring(
        GIRO,
        [
            booked("2026-11-03", "-12.99", "Netflix", bank_transaction_code="PMNT-RDDT-ESDD"),
            booked("2026-11-02", "-70.00", "Me", counterpart_iban=SAVINGS.iban),
        ],
    )
    everything = ",".join(holder.account_ids())
    rows = holder.get("/transactions", accountIds=everything)["transactions"]
    shop, own = (holder.get(f"/transactions/{row['id']}/explanation") for row in rows)
    assert shop["type"] == {
        "value": "direct_debit",
        "rule": "iso-code:PMNT-RDDT",
        "reason": "The bank's ISO 20022 transaction code PMNT-RDDT says so.",
    }
    assert shop["category"]["rule"] == shop["merchantName"]["rule"] == "brand:netflix"
    assert [shop["transfer"][key] for key in ("accountId", "transactionId", "rule")] == [None, None, None]
    assert own["category"]["rule"] == own["merchantName"]["rule"] == "own-account"
    assert own["transfer"] == {
        "accountId": holder.account_ids()[0],
        "transactionId": None,
        "rule": "counterpart_iban_is_own_account",
        "reason": "The IBAN of the payee or payer is that of another account of yours; no transaction there belongs to "
        "it yet, so it counts as income or expense until one arrives.",
    }
    for row, told in zip(rows, (shop, own), strict=True):
        assert [told[key]["value"] for key in ("type", "category", "merchantName")] == [
            row[key] for key in ("type", "category", "merchantName")
        ]


@pytest.mark.requirement("explanations.contract")
@pytest.mark.parametrize("path", EXPLANATIONS)
def test_explanations_have_the_scopes_and_statuses_of_what_they_explain(path: str) -> None:
    described = CONTRACT["paths"][path]["get"]
    scope, statuses = EXPLANATIONS[path]
    assert described["security"] == [{"oauth2": [scope]}]
    assert sorted(described["responses"]) == statuses.split()


@pytest.mark.requirement("explanations.contract")
@pytest.mark.parametrize("path", EXPLANATIONS)
def test_explanations_ask_for_the_scope_of_the_contract(demo_service: Service, path: str) -> None:
    scope, _ = EXPLANATIONS[path]
    others = {"read:accounts", "read:transactions", "read:cashflow"} - {scope}
    user = demo_service.newcomer().user.id
    address = path.format(month="2026-11", category="RENT", id="sub_1")
    answer = demo_service.client(user, frozenset(others)).get(address)
    assert (answer.status_code, answer.json()) == (403, {"error": f"Insufficient scope. Required: {scope}"})


@pytest.mark.requirement("explanations.contract")
@pytest.mark.parametrize("path", EXPLANATIONS)
def test_the_examples_of_the_contract_exist_in_the_demo(demo_service: Service, path: str) -> None:
    query: dict[str, str] = {}
    address = path
    for named in CONTRACT["paths"][path]["get"].get("parameters", []):
        parameter = resolved(named)
        given = parameter if "example" in parameter else resolved(parameter["schema"])
        example = json.dumps(given["example"]).strip('"')
        if parameter["in"] == "path":
            address = address.replace(f"{{{parameter['name']}}}", example)
        else:
            query[parameter["name"]] = example
    body_of(demo_service.named("demo"), address, **query)


def resolved(node: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in node:
        return node
    _, kind, name = node["$ref"].removeprefix("#/").split("/")
    found: dict[str, Any] = CONTRACT["components"][kind][name]
    return found
