"""GET /profile, /balances, /cashflow/categories and /connections over the real application."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from storage import connections, jobs
from storage.jobs import RefusedBatch
from tests.explanations.conftest import Holder, Service, body_of

GIRO = AccountRecord(stable_key="DE02120300000000202051", iban="DE02120300000000202051", currency="EUR")
CASH = AccountRecord(stable_key="cash", name="Cash", currency="EUR")


def booked(day: str, amount: str, **further: Any) -> TransactionRecord:
    said = {"currency": "EUR", **further}
    return TransactionRecord(booking_date=date.fromisoformat(day), amount=Decimal(amount), **said)


def statement(day: str, balance: str) -> StatementRecord:
    return StatementRecord(closing_date=date.fromisoformat(day), closing=Decimal(balance))


@pytest.mark.requirement("page.profile")
def test_the_profile_says_whose_data_and_whose_calendar(demo_service: Service) -> None:
    today = demo_service.services.clock.today().isoformat()
    profile = body_of(demo_service.named("globe"), "/profile")
    assert profile.pop("lastEventId").startswith("evt_")
    assert profile == {"name": "globe", "homeCurrency": "EUR", "timeZone": "Europe/Berlin", "today": today}


@pytest.mark.requirement("balances.points")
def test_balances_are_told_back_to_the_first_booking(holder: Holder) -> None:
    holder.bring(
        GIRO, [booked("2026-11-17", "10.00"), booked("2026-11-19", "-4.50")], statement("2026-11-20", "100.00")
    )
    holder.bring(CASH, [booked("2026-11-18", "-1.00")])
    giro, cash = holder.account_ids()
    euros = {"balance": 100.0, "currency": "EUR", "ownBalance": 100.0, "ownCurrency": "EUR", "isOld": False}
    held = [{"accountId": giro, "date": "2026-11-20", **euros}]
    assert holder.get("/balances") == {
        "currency": "EUR",
        "accounts": held,
        "leftOut": [{"accountId": cash, "reason": "no_balance"}],
        "points": [
            {"date": "2026-11-17", "balance": 104.5},
            {"date": "2026-11-18", "balance": 104.5},
            {"date": "2026-11-19", "balance": 100.0},
            {"date": "2026-11-20", "balance": 100.0},
        ],
    }
    weekly = holder.get("/balances", every="week", dateTo="2026-11-19", accountIds=giro)
    points = [{"date": "2026-11-19", "balance": 100.0}]
    of_day = [{**held[0], "date": "2026-11-19"}]
    assert weekly == {"currency": "EUR", "accounts": of_day, "leftOut": [], "points": points}
    assert holder.get("/balances", dateFrom="2026-11-21")["points"] == []
    assert holder.get("/balances", dateTo="2026-11-16")["points"] == []


@pytest.mark.requirement("balances.age")
def test_an_old_balance_says_its_day_and_counts_as_it_was(holder: Holder) -> None:
    dollars = AccountRecord(stable_key="dollars", name="Dollars", currency="USD")
    roubles = AccountRecord(stable_key="roubles", name="Roubles", currency="RUB")
    holder.bring(GIRO, [booked("2018-12-30", "5.00")], statement("2018-12-31", "1234.56"))
    holder.bring(dollars, [], statement("2026-11-20", "11.00"))
    holder.bring(roubles, [], statement("2024-06-30", "70.00"))
    giro, dollar, rouble = holder.account_ids()
    ids = f"{giro},{dollar},{rouble}"
    found = holder.get("/balances", every="month", dateFrom="2026-11-20", dateTo="2026-11-20")
    total = holder.get("/snapshot", accountIds=ids)["totalBalance"]
    in_euros = round(total - 1234.56, 2)
    names = ("accountId", "date", "balance", "currency", "ownBalance", "ownCurrency", "isOld")
    assert found["accounts"] == [
        dict(zip(names, (giro, "2018-12-31", 1234.56, "EUR", 1234.56, "EUR", True), strict=True)),
        dict(zip(names, (dollar, "2026-11-20", in_euros, "EUR", 11.0, "USD", False), strict=True)),
        dict(zip(names, (rouble, "2024-06-30", None, "EUR", 70.0, "RUB", True), strict=True)),
    ]
    assert found["leftOut"] == [{"accountId": rouble, "reason": "no_rate"}]
    assert found["points"] == [{"date": "2026-11-20", "balance": total}]
    assert 8 < in_euros < 12


@pytest.mark.requirement("balances.accounts")
def test_each_account_is_told_as_of_the_last_day_and_its_points_when_asked_for(holder: Holder) -> None:
    holder.bring(
        GIRO, [booked("2026-11-17", "10.00"), booked("2026-11-19", "-4.50")], statement("2026-11-20", "100.00")
    )
    for day, known, balance in (
        ("2026-11-18", "2026-11-18", 104.5),
        ("2026-11-16", "2026-11-16", 94.5),
        ("2025-01-01", "2026-11-16", 94.5),  # known of a later day only
    ):
        (found,) = holder.get("/balances", dateTo=day, perAccount="true")["accounts"]
        assert (found["date"], found["balance"], found["ownBalance"]) == (known, balance, balance)
    (found,) = holder.get("/balances", dateFrom="2026-11-18", dateTo="2026-11-19", perAccount="true")["accounts"]
    assert found["points"] == [{"date": "2026-11-18", "balance": 104.5}, {"date": "2026-11-19", "balance": 100.0}]


@pytest.mark.requirement("balances.accounts")
def test_accounts_add_up_to_the_point_of_the_same_day(demo_service: Service) -> None:
    for name in ("demo", "globe"):
        client = demo_service.named(name)
        for day in ("2026-09-30", "2025-03-31"):
            series = body_of(client, "/balances", dateTo=day, dateFrom=day, perAccount="true")
            (point,) = series["points"]
            assert sum(Decimal(str(each["balance"])) for each in series["accounts"]) == Decimal(str(point["balance"]))
            for each in series["accounts"]:
                assert each["points"] == [{"date": day, "balance": each["ownBalance"]}]


@pytest.mark.requirement("balances.points")
@pytest.mark.long
def test_the_last_point_is_the_snapshot_of_every_user_of_the_demo(demo_service: Service) -> None:
    today = demo_service.services.clock.today().isoformat()
    for name in ("demo", "globe", "solo"):
        client = demo_service.named(name)
        ids = ",".join(account["id"] for account in body_of(client, "/accounts")["accounts"])
        total = body_of(client, "/snapshot", accountIds=ids)["totalBalance"]
        for every in ("day", "week", "month"):
            series = body_of(client, "/balances", every=every)
            points = series["points"]
            assert sum(Decimal(str(each["balance"] or 0)) for each in series["accounts"]) == Decimal(str(total))
            assert points[-1] == {"date": today, "balance": total}
            assert len(points) > 12


@pytest.mark.requirement("balances.points")
def test_a_user_without_accounts_holds_nothing(holder: Holder) -> None:
    assert holder.get("/balances") == {
        "currency": "EUR",
        "accounts": [],
        "leftOut": [],
        "points": [{"date": "2026-11-20", "balance": 0.0}],
    }
    assert holder.get("/cashflow/categories", months=1)["months"] == [
        {"month": "2026-11", "expenses": 0.0, "categories": []}
    ]
    assert holder.client.get("/balances?accountIds=acc_x").status_code == 400
    refused = holder.client.get("/balances?dateFrom=2026-02-01&dateTo=2026-01-01")
    assert (refused.status_code, refused.json()) == (400, {"error": "dateFrom: must not be after dateTo"})


@pytest.mark.requirement("categories.month")
def test_categories_add_up_to_the_cashflow_of_every_user_of_the_demo(demo_service: Service) -> None:
    for name in ("demo", "globe", "solo"):
        client = demo_service.named(name)
        ids = ",".join(account["id"] for account in body_of(client, "/accounts")["accounts"])
        months = body_of(client, "/cashflow/categories", months=14)["months"]
        for month, figures in zip(
            months, body_of(client, "/cashflow", months=14, accountIds=ids)["cashflow"], strict=True
        ):
            spent = [Decimal(str(each["amount"])) for each in month["categories"]]
            assert (month["month"], month["expenses"]) == (figures["month"], figures["expenses"])
            assert sum(spent) == Decimal(str(figures["expenses"]))
            assert spent == sorted(spent, reverse=True)
        assert sum(len(month["categories"]) for month in months) > 50


def only(holder: Holder) -> dict[str, Any]:
    (told,) = holder.get("/connections")["connections"]
    return dict(told)


@pytest.mark.requirement("page.connections")
def test_a_connection_tells_its_accounts_and_the_last_sync(holder: Holder) -> None:
    now = holder.service.services.clock.now()
    database = holder.service.services.everybody
    created = holder.connection.created_at.isoformat(timespec="milliseconds") + "Z"
    unsynced: dict[str, Any] = {
        "id": holder.connection.id,
        "bankName": "Bank",
        "source": "uploads",
        "status": "ACTIVE",
        "accountIds": [],
        "createdAt": created,
        "lastSyncedAt": None,
        "lastSync": None,
        "isSyncing": False,
        "canSync": True,
        "nextSyncAllowedAt": None,
        "needsUser": False,
        "message": None,
        "warnings": [],
        "consentExpiresAt": None,
        "consentDaysLeft": None,
        "quota": None,
    }
    assert only(holder) == unsynced
    holder.bring(GIRO, [booked("2026-11-17", "10.00")])
    job = jobs.start(
        database, user_id=holder.user.id, connection_id=holder.connection.id, cooldown=timedelta(hours=1), now=now
    )
    assert job is not None
    told = only(holder)
    assert (told["accountIds"], told["isSyncing"], told["canSync"]) == (holder.account_ids(), True, False)
    assert told["nextSyncAllowedAt"] > created
    assert told["lastSync"] == {
        "syncId": job.id,
        "status": "pending",
        "newTransactions": None,
        "error": None,
        "finishedAt": None,
    }
    jobs.refuse(database, job, RefusedBatch(name="march.xml", reason="The file is damaged."))
    jobs.add_stored(database, job, new_transactions=3, now=now)
    assert jobs.complete(database, job, now=now)
    told = only(holder)
    assert (told["lastSync"]["newTransactions"], told["lastSync"]["status"]) == (3, "completed")
    assert told["lastSync"]["finishedAt"] is not None
    assert (told["warnings"], told["message"]) == (["march.xml: The file is damaged."], None)


@pytest.mark.requirement("page.connections")
def test_a_connection_that_needs_its_user_says_so(holder: Holder) -> None:
    database, now = holder.service.services.everybody, holder.service.services.clock.now()
    connections.keep_consent(
        database, holder.connection.user_id, holder.connection.id, expires_at=now + timedelta(days=3, hours=1)
    )
    assert only(holder)["consentDaysLeft"] == 3
    connections.keep_consent(
        database, holder.connection.user_id, holder.connection.id, expires_at=now - timedelta(days=300)
    )
    connections.expire_consents(database, now=now)
    told = only(holder)
    assert (told["status"], told["needsUser"], told["canSync"], told["consentDaysLeft"]) == ("EXPIRED", True, False, 0)
    assert told["message"]
    connections.remove(database, holder.user.id, holder.connection.id, now=now)
    assert holder.get("/connections") == {"connections": []}


@pytest.mark.requirement("page.connections")
def test_a_failed_sync_gives_its_reason(holder: Holder) -> None:
    database, now = holder.service.services.everybody, holder.service.services.clock.now()
    for number in range(2):
        job = jobs.start(
            database,
            user_id=holder.user.id,
            connection_id=holder.connection.id,
            cooldown=timedelta(0),
            now=now + timedelta(seconds=number),
        )
        assert job is not None
        assert jobs.fail(database, job, error=f"The bank did not answer ({number}).", now=now)
        told = only(holder)
        assert (told["message"], told["lastSync"]["error"]) == (f"The bank did not answer ({number}).",) * 2
