"""GET /simplefin/accounts: what REST says, in the fields that apps read, which differ in what they cannot stand."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from analytics.records import AccountRecord
from handlers.simplefin import account_set
from storage import accounts, connections, users
from storage.oauth.grants import Terms
from tests.explanations.conftest import Holder, Service, body_of
from tests.simplefin.conftest import CASH, GIRO, App, balance, booked, connected, served

pytestmark = pytest.mark.requirement("simplefin.accounts")

ZONES = (
    "Pacific/Honolulu",
    "America/Los_Angeles",
    "America/New_York",
    "UTC",
    "Europe/Berlin",
    "Asia/Kolkata",
    "Asia/Tokyo",
    "Pacific/Auckland",
)
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def by_rest(holder: Any, ids: list[str]) -> dict[str, tuple[str, Decimal, str]]:
    """Each booking of these accounts: its account, amount and day as the interface says them."""
    rows: dict[str, tuple[str, Decimal, str]] = {}
    page, pages = 1, 1
    while page <= pages:
        body = body_of(holder, "/transactions", accountIds=",".join(ids), perPage=100, page=page)
        pages, page = body["pagination"]["pageCount"], page + 1
        for row in body["transactions"]:
            amount = Decimal(str(row["amount"])).quantize(Decimal("0.01"))
            rows[row["id"]] = row["bankAccount"]["id"], amount, row["bookingDate"][:10]
    return rows


def told(app: App, query: str) -> dict[str, tuple[str, Decimal, str]]:
    """The same as an app hears it."""
    found = [(account["id"], row) for account in app.read(query)["accounts"] for row in account["transactions"]]
    made = {row["id"]: (id_, Decimal(row["amount"]), day_of(row)) for id_, row in found}
    assert len(made) == len(found)
    return made


def day_of(row: dict[str, Any]) -> str:
    return datetime.fromtimestamp(row["posted"], UTC).date().isoformat()


def seconds(day: str, zone: str = "UTC") -> int:
    return int(datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone)).timestamp())


@pytest.mark.parametrize("name", ["demo", "globe"])
def test_every_balance_and_row_is_as_the_interface_says(service: Service, name: str) -> None:
    rest = service.named(name)
    everything = body_of(rest, "/accounts")["accounts"]
    owned = [each for each in everything if each["balance"] is not None]
    app = connected(service, users.get_by_name(service.services.everybody, name).id)
    body = app.read("start-date=0&version=2")
    assert [each["code"] for each in body["errlist"]] == ["act.failed"] * (len(everything) - len(owned))
    told_balances = {each["id"]: (each["currency"], Decimal(each["balance"])) for each in body["accounts"]}
    assert told_balances == {each["id"]: (each["currency"], Decimal(str(each["balance"]))) for each in owned}
    assert told(app, "start-date=0") == by_rest(rest, [each["id"] for each in owned])
    for account in body["accounts"]:
        assert [row["posted"] for row in account["transactions"]] == sorted(
            row["posted"] for row in account["transactions"]
        )


@pytest.mark.parametrize("mb", ["64", "0"])
@pytest.mark.sampled
def test_memory_and_store_answer_the_same(tmp_path: Path, mb: str) -> None:
    service = served(tmp_path / "data", RATE_LIMIT="off", CACHE_MB=mb)
    holder = service.newcomer()
    rows = [booked("2026-11-10", "-1.20", "One"), booked("2026-11-12", "-3.00", "Two", status="pending")]
    holder.bring(GIRO, rows, balance("5.00"))
    holder.bring(CASH, [booked("2026-11-11", "7.00", "Three")], balance("7.00"))
    body = connected(service, holder.user.id).read("pending=1&start-date=0")
    found = [(each["name"], [row["description"] for row in each["transactions"]]) for each in body["accounts"]]
    assert found == [("Giro", ["Two", "One"]), ("Cash", ["Three"])]
    service.services.close()


@pytest.mark.parametrize("zone", ZONES)
def test_a_window_from_midnight_to_midnight_has_exactly_its_days_in_every_zone(new: "New", zone: str) -> None:
    app, days = new
    for first, last in (("2024-02-28", "2024-03-02"), ("2026-03-28", "2026-03-31"), ("2026-10-24", "2026-10-27")):
        day, end = date.fromisoformat(first), date.fromisoformat(last)
        while day < end:
            after = day + timedelta(days=1)
            query = f"start-date={seconds(str(day), zone)}&end-date={seconds(str(after), zone)}"
            assert [day_of(row) for row in app.rows(query)] == [str(day)]
            day = after
    assert len(days) == 9


New = tuple[App, list[str]]


@pytest.fixture(scope="module")
def new(service: Service) -> New:
    """An app, and the days of the bookings that it can see: a leap day and both ends of summer time."""
    holder = service.newcomer()
    starts = [date(2024, 2, 28), date(2026, 3, 28), date(2026, 10, 24)]
    days = [str(start + timedelta(days=number)) for start in starts for number in range(3)]
    holder.bring(GIRO, [booked(day, "-1.00", f"Of {day}") for day in days], balance("5.00"))
    return connected(service, holder.user.id), days


def test_start_counts_and_end_does_not(new: New) -> None:
    app, _ = new
    stamp = seconds("2026-10-25T10:00")
    assert [day_of(row) for row in app.rows(f"start-date={stamp}&end-date={stamp + 86_400}")] == ["2026-10-25"]
    assert app.rows(f"start-date={stamp}.5&end-date={stamp + 86_400}") == []
    assert len(app.rows(f"start-date={stamp}&end-date={stamp + 86_400}.001")) == 2
    assert app.rows(f"start-date={stamp}&end-date={stamp}") == []
    assert app.rows(f"start-date={stamp}&end-date=0") == []
    assert len(app.rows("start-date=-1e30&end-date=99999999999999999999999999")) == 9


def test_a_long_answer_comes_in_pieces_with_the_same_content(new: New, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = new[0].get("start-date=0&pending=1")
    assert "content-length" in whole.headers
    monkeypatch.setattr("handlers.simplefin.account_set.PIECE_ROWS", 2)
    monkeypatch.setattr("handlers.simplefin.endpoint.PART_BYTES", 100)
    in_pieces = new[0].get("start-date=86400&pending=1")  # another day than what was kept
    assert "content-length" not in in_pieces.headers
    assert in_pieces.content == whole.content


@pytest.mark.parametrize("query", ["start-date=yesterday", "start-date=", "end-date=2026-11-20", "start-date=NaN"])
def test_what_is_no_number_is_refused_in_words_of_the_protocol(new: New, query: str) -> None:
    answer = new[0].get(query)
    assert answer.status_code == 400
    (sentence,) = answer.json()["errors"]
    assert sentence == f"{query.partition('=')[0]}: must be a number"
    assert answer.json()["errlist"] == [{"code": "gen.api", "msg": sentence}]
    assert answer.json()["accounts"] == answer.json()["connections"] == []
    assert new[0].get(f"start-date={'9' * 5000}").status_code == 400
    assert new[0].get("start-date=1&start-date=2").status_code == 400


def test_without_a_start_the_last_ninety_days_are_told(service: Service, holder: Holder) -> None:
    days = [(NOW - timedelta(days=number)).date().isoformat() for number in (0, 89, 91)]
    holder.bring(GIRO, [booked(day, "-1.00", day) for day in days], balance("5.00"))
    app = connected(service, holder.user.id)
    assert [day_of(row) for row in app.rows("")] == sorted(days[:2])
    assert len(app.rows("start-date=0")) == 3


def test_an_end_of_now_brings_the_rows_of_today_whose_stamp_lies_ahead(service: Service, holder: Holder) -> None:
    clock = service.services.clock
    before = clock.offset
    clock.offset = before - timedelta(hours=4)  # 8:00 UTC
    holder.bring(GIRO, [booked("2026-11-20", "-1.00"), booked("2026-11-19", "-2.00", "Other")], balance("5.00"))
    app, now = connected(service, holder.user.id), int((NOW - timedelta(hours=4)).timestamp())
    assert [day_of(row) for row in app.rows(f"end-date={now + 60}")] == ["2026-11-19", "2026-11-20"]
    assert [day_of(row) for row in app.rows(f"end-date={now - 840}")] == ["2026-11-19", "2026-11-20"]
    assert [day_of(row) for row in app.rows(f"end-date={now - 960}")] == ["2026-11-19"]
    clock.offset = before


def test_pending_rows_come_for_the_asking_and_keep_their_id_when_they_book(service: Service, holder: Holder) -> None:
    waiting = booked("2026-11-18", "-9.99", "Shoes", status="pending", provider_id="p1")
    holder.bring(GIRO, [waiting, booked("2026-11-17", "-1.00", "Bread")], balance("5.00"))
    app = connected(service, holder.user.id)
    for query in ("", "pending=0", "pending=true"):
        assert [row["description"] for row in app.rows(query)] == ["Bread"]
    first, second = app.rows("pending=1")
    assert (first["description"], first["posted"], first["pending"]) == ("Shoes", 0, True)
    assert first["transacted_at"] == seconds("2026-11-18T10:00")
    assert "pending" not in second
    assert app.rows(f"pending=1&start-date={seconds('2026-11-19')}") == []
    holder.bring(GIRO, [booked("2026-11-18", "-9.99", "Shoes", provider_id="p1")], balance("-5.00"))
    assert first["id"] in {row["id"] for row in app.rows("pending=1") if "pending" not in row}


def test_words_are_never_empty_and_show_only_what_can_be_seen(service: Service, holder: Holder) -> None:
    rows = [
        booked("2026-11-01", "-1.00", "Einkauf\u202e REWE\nSAGT\tDANKE", counterpart_name="REWE Markt GmbH"),
        booked("2026-11-02", "-2.00", None, counterpart_name="Mira Sommerfeld"),
        booked("2026-11-03", "-3.00", "Only words"),
        booked("2026-11-04", "-4.00", None),
        booked("2026-11-05", "-5.00", "x" * 700, counterpart_name="Ada Lovelace"),
        booked("2026-11-06", "-6.00", "Ticket", merchant_name="Bahn", counterpart_name="PayPal Europe"),
    ]
    holder.bring(GIRO, rows, balance("5.00"))
    told = [(row["payee"], row["description"], row["memo"]) for row in connected(service, holder.user.id).rows("")]
    assert told[0] == ("REWE", "Einkauf REWE SAGT DANKE", "")
    assert told[1] == ("Mira Sommerfeld", "Mira Sommerfeld", "")
    assert told[2] == ("Only words", "Only words", "")
    assert told[3][0] == told[3][1]
    assert told[3][0]
    assert told[4] == ("Ada Lovelace", "x" * 500, "")
    assert told[5] == ("Bahn", "Ticket", "PayPal Europe")


@pytest.mark.parametrize(
    ("currency", "amount", "expected"),
    [("JPY", "1234", "1234.00"), ("EUR", "-0.5", "-0.50"), ("KWD", "1.234", "1.234")],
)
def test_amounts_have_two_decimals_or_more(
    service: Service, holder: Holder, currency: str, amount: str, expected: str
) -> None:
    account = AccountRecord(stable_key="k", currency=currency, name="Far away")
    holder.bring(account, [booked("2026-11-01", amount, currency=currency)], balance(amount))
    (told,) = connected(service, holder.user.id).read()["accounts"]
    assert told["balance"] == told["available-balance"] == told["transactions"][0]["amount"] == expected


def test_an_account_has_every_field_that_any_app_insists_on(service: Service, holder: Holder) -> None:
    holder.bring(GIRO, [booked("2026-11-01", "-1.00")], balance("5.00"))
    body = connected(service, holder.user.id).read("balances-only=1")
    (account,) = body["accounts"]
    (connection,) = body["connections"]
    assert account == {
        "id": holder.account_ids()[0],
        "name": "Giro",
        "currency": "EUR",
        "balance": "5.00",
        "available-balance": "5.00",
        "balance-date": account["balance-date"],
        "transactions": [],
        "holdings": [],
        "conn_id": holder.connection.id,
        "org": account["org"],
    }
    assert 0 <= account["balance-date"] - seconds("2026-11-20T12:00") < 3600, "when it was synced"
    assert account["org"] == {
        "id": holder.connection.id,
        "name": "Bank",
        "domain": f"{holder.connection.id.replace('_', '-')}.invalid",
        "sfin-url": "http://127.0.0.1:8000/simplefin",
    }
    assert connection == {
        "conn_id": holder.connection.id,
        "name": "Bank",
        "org_id": holder.connection.id,
        "sfin_url": "http://127.0.0.1:8000/simplefin",
    }
    assert "DE02120300000000202051" not in str(body)


def test_a_balance_is_of_the_last_sync_and_never_of_tomorrow(service: Service, holder: Holder) -> None:
    holder.bring(GIRO, [], balance("5.00"))
    database, synced = service.services.everybody, datetime(2026, 11, 19, 8, 30)  # noqa: DTZ001
    database.atomically(
        lambda session: accounts.mark_synced(
            session, user_id=holder.user.id, connection_id=holder.connection.id, now=synced
        )
    )
    (account,) = connected(service, holder.user.id).read()["accounts"]
    assert account["balance-date"] == seconds("2026-11-19T08:30")


def test_accounts_of_one_name_can_be_told_apart(service: Service, holder: Holder) -> None:
    again = AccountRecord(
        stable_key="DE02500105170137075030", iban="DE02500105170137075030", currency="EUR", name="Giro"
    )
    dollars = AccountRecord(stable_key=f"{again.iban}/USD", iban=again.iban, currency="USD", name="Giro")
    for account in (GIRO, again, dollars, CASH):
        holder.bring(account, [], balance("1.00"))
    app = connected(service, holder.user.id)
    names = ["Giro …2051", "Giro …5030 EUR", "Giro …5030 USD", "Cash"]
    assert [each["name"] for each in app.read()["accounts"]] == names
    second = holder.account_ids()[1]
    assert [each["name"] for each in app.read(f"account={second}")["accounts"]] == names[1:2]


def test_accounts_are_asked_for_by_id_and_never_all_by_mistake(service: Service, holder: Holder) -> None:
    for account in (GIRO, CASH):
        holder.bring(account, [booked("2026-11-01", "-1.00", account.name)], balance("1.00"))
    giro, cash = holder.account_ids()
    app = connected(service, holder.user.id)
    assert [each["id"] for each in app.read(f"account={cash}")["accounts"]] == [cash]
    assert [each["id"] for each in app.read(f"account={cash}&account={giro}")["accounts"]] == [giro, cash]
    foreign = service.newcomer()
    foreign.bring(GIRO, [], balance("1.00"))
    for query in ("account=", "account=none", f"account={foreign.account_ids()[0]}"):
        assert app.read(query)["accounts"] == []


def test_an_account_without_a_balance_is_left_out_and_said(service: Service, holder: Holder) -> None:
    holder.bring(GIRO, [booked("2026-11-01", "-1.00")], balance("1.00"))
    holder.bring(CASH, [booked("2026-11-01", "-2.00")])
    body = connected(service, holder.user.id).read()
    assert [each["name"] for each in body["accounts"]] == ["Giro"]
    sentence = "Cash is left out: its balance is not known"
    assert body["errors"] == [sentence]
    assert body["errlist"] == [{"code": "act.failed", "msg": sentence, "account_id": holder.account_ids()[1]}]


def test_a_connection_that_needs_its_person_is_named_in_the_words_that_apps_look_for(
    service: Service, holder: Holder
) -> None:
    holder.bring(GIRO, [], balance("1.00"))
    holder.bring(CASH, [], balance("1.00"))
    service.services.everybody.atomically(
        lambda session: connections.record_failure(
            session, holder.user.id, holder.connection.id, status="REAUTH_REQUIRED"
        )
    )
    body = connected(service, holder.user.id).read()
    assert body["errors"] == ["Connection to Bank may need attention"]
    assert body["errlist"] == [{"code": "con.auth", "msg": body["errors"][0], "conn_id": holder.connection.id}]
    assert len(body["accounts"]) == 2


def test_of_too_many_rows_the_oldest_days_are_left_out_and_said(
    service: Service, holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = ["2026-11-01", "2026-11-02", "2026-11-02", "2026-11-03"]
    holder.bring(GIRO, [booked(day, f"-{n}.00", f"n{n}") for n, day in enumerate(days, 1)], balance("1.00"))
    holder.bring(CASH, [booked("2026-11-04", "-9.00")], balance("1.00"))
    monkeypatch.setattr(account_set, "ROWS_MAX", 3)
    body = connected(service, holder.user.id).read()
    rows = [row["amount"] for account in body["accounts"] for row in account["transactions"]]
    assert rows == ["-4.00", "-9.00"]
    sentence = "Giro: this answer is whole from 2026-11-03 on, ask for earlier days apart"
    assert body["errlist"] == [{"code": "act.missingdata", "msg": sentence, "account_id": holder.account_ids()[0]}]


def test_an_app_sees_what_its_person_lets_it_see(service: Service, holder: Holder) -> None:
    for account in (GIRO, CASH):
        holder.bring(account, [booked("2026-11-01", "-1.00", account.name)], balance("1.00"))
    giro, cash = holder.account_ids()

    def seen(terms: Terms) -> list[tuple[str, int]]:
        body = connected(service, holder.user.id, terms=terms).read("start-date=0&pending=1")
        assert body["errors"] == []
        assert len(body["connections"]) == 1
        return [(each["id"], len(each["transactions"])) for each in body["accounts"]]

    assert seen(Terms()) == [(giro, 1), (cash, 1)]
    assert seen(Terms(accounts=(cash,))) == [(cash, 1)]
    assert seen(Terms(accounts=(cash,), all_but=True)) == [(giro, 1)]
    assert seen(Terms(figures_only=True)) == [(giro, 0), (cash, 0)]
    app = connected(service, holder.user.id, terms=Terms(accounts=(cash,)))
    assert app.read(f"account={giro}")["accounts"] == []
    grants = service.services.authorization.grants
    (grant,) = [each.grant for each in grants.connected_apps(holder.user.id) if each.grant.terms.accounts == (cash,)][
        :1
    ]
    grants.narrow(grant, terms=Terms(accounts=(cash,), figures_only=True), ends=grant.expires_at)
    assert [len(each["transactions"]) for each in app.read("start-date=0")["accounts"]] == [0]
    grants.widen(grant, terms=Terms(), ends=grant.expires_at)
    assert len(app.rows()) == 2


def test_a_hidden_account_is_hidden_here_too(service: Service, holder: Holder) -> None:
    for account in (GIRO, CASH):
        holder.bring(account, [booked("2026-11-01", "-1.00", account.name)], balance("1.00"))
    app, (giro, cash) = connected(service, holder.user.id), holder.account_ids()
    assert len(app.rows()) == 2
    since = service.services.clock.now()
    service.services.everybody.atomically(
        lambda session: accounts.hide(session, user_id=holder.user.id, account_id=giro, since=since)
    )
    assert [each["id"] for each in app.read("start-date=0")["accounts"]] == [cash]
