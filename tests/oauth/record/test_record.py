"""The record of who read what: counted by grant, hour and operation, and of what was done to the account."""

import csv
import io
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import chain
from typing import Any

import pytest

from auth import record
from auth.apps.clients import PAGE
from auth.record import AccessRecord
from handlers.mcp.tools import TOOLS
from handlers.oauth.record_page import KIND_OF
from handlers.operations import OPERATIONS
from storage import users
from storage.database import StoreFull, StoreUnavailable
from storage.oauth import access_record
from storage.oauth.access_record import Count
from tests.oauth.pages.test_account import signed_in


def of(world: Any) -> list[tuple[str, str, int, int]]:
    """Hour, operation, calls and refusals of alice's record, in the order of the words."""
    entries = chain.from_iterable(world.server.record.hours(world.user.id))
    return sorted((f"{each.hour:%H}", each.operation, each.calls, each.refusals) for each in entries)


@pytest.mark.requirement("oauth.record")
def test_calls_of_an_hour_are_one_row_and_those_of_the_next_another(fresh: Any) -> None:
    def reads(times: int) -> None:
        for _ in range(times):
            fresh.server.record.note(fresh.user.id, "listAccounts", grant_id="g", client_id="c")
        fresh.server.record.write()

    reads(2)
    reads(1)
    fresh.clock.forward(hours=1)
    reads(1)
    assert of(fresh) == [("12", "listAccounts", 3, 0), ("13", "listAccounts", 1, 0)]
    (entry,) = fresh.server.record.overview(fresh.user.id, within=timedelta(days=1))
    assert (entry.calls, f"{entry.last_at:%H:%M}") == (4, "13:00")


@pytest.mark.requirement("oauth.record")
def test_writers_of_several_processes_add_up(fresh: Any) -> None:
    writers = [AccessRecord(fresh.database, fresh.clock) for _ in range(4)]

    def write(each: AccessRecord) -> None:
        for _ in range(10):
            each.note(fresh.user.id, "listAccounts", grant_id="g", client_id="c", is_refused=True)
            each.write()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, writers))
    for each in writers:
        each.write()  # what a lost race had put back
    assert of(fresh) == [("12", "listAccounts", 40, 40)]


@pytest.mark.requirement("oauth.record")
@pytest.mark.parametrize(
    ("failure", "has_traceback"), [(StoreUnavailable, False), (StoreFull, False), (RuntimeError, True)]
)
def test_what_the_store_does_not_take_is_written_later(
    fresh: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failure: type[Exception],
    has_traceback: bool,
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise failure

    for time_ in (1, 2):
        fresh.server.record.note(fresh.user.id, "listAccounts")
        with monkeypatch.context() as broken:
            broken.setattr(access_record, "add", fails)
            for _ in range(3):
                fresh.server.record.write()
        fresh.server.record.note(fresh.user.id, "listAccounts")
        assert of(fresh) == [("12", "listAccounts", 2 * time_, 0)]
    said = [(each.getMessage(), bool(each.exc_info)) for each in caplog.records if each.name == "bankdata.record"]
    assert said == [("the record could not be written yet", has_traceback)] * 2  # once each time


@pytest.mark.requirement("oauth.record")
def test_what_is_counted_while_the_store_does_not_take_it_is_added_and_memory_holds_no_more(
    fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def note(*operations: str) -> None:
        for operation in operations:
            fresh.server.record.note(fresh.user.id, operation)

    def fails(*_: Any, **__: Any) -> None:
        note("getSnapshot", "getCashflow")
        raise StoreUnavailable

    monkeypatch.setattr(record, "WAITING_MAX", 2)
    note("listAccounts", "getSnapshot")
    with monkeypatch.context() as broken:
        broken.setattr(access_record, "add", fails)
        fresh.server.record.write()
    assert of(fresh) == [("12", "getCashflow", 1, 0), ("12", "getSnapshot", 2, 0)]


@pytest.mark.requirement("oauth.record")
def test_memory_holds_so_many_sums_and_no_more(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "WAITING_MAX", 2)
    for operation in ("listAccounts", "getCashflow", "getSnapshot", "listAccounts"):
        fresh.server.record.note(fresh.user.id, operation)
    assert of(fresh) == [("12", "getCashflow", 1, 0), ("12", "listAccounts", 2, 0)]


@pytest.mark.requirement("oauth.record")
def test_the_record_is_kept_for_13_months_and_goes_with_the_user(fresh: Any) -> None:
    for user in (fresh.user, fresh.other):
        fresh.server.record.note(user.id, "listAccounts")
    fresh.server.record.write()
    fresh.clock.forward(days=396)
    fresh.server.cleanup.sweep()
    assert len(of(fresh)) == 1
    fresh.database.atomically(lambda session: users.remove(session, fresh.other.id))
    fresh.server.record.note(fresh.other.id, "listAccounts")  # a request that was under way
    assert list(fresh.server.record.hours(fresh.other.id)) == [[]]
    fresh.clock.forward(hours=1)
    fresh.server.cleanup.sweep()
    assert of(fresh) == []


@pytest.mark.requirement("oauth.record")
def test_what_a_person_does_is_recorded_with_what_was_refused(fresh: Any) -> None:
    client_id = fresh.register()
    fresh.tokens(client_id)
    browser = fresh.browser()
    browser.sign_in(browser.authorize(client_id), password="not the password")
    fresh.server.grants.revoke_all(because="revoked by the user", user_id=fresh.user.id, client_id=client_id)
    assert of(fresh) == [("12", "giveConsent", 1, 0), ("12", "revokeGrant", 1, 0), ("12", "signIn", 2, 1)]


@pytest.mark.requirement("oauth.record")
def test_two_consents_of_one_hour_are_two_rows(fresh: Any) -> None:
    fresh.tokens()
    fresh.tokens()
    given = [row for row in of(fresh) if row[1] == "giveConsent"]
    assert given == [("12", "giveConsent", 1, 0)] * 2


@pytest.mark.requirement("oauth.record")
def test_the_account_page_shows_it_and_hands_it_out(fresh: Any) -> None:
    client_id = fresh.register(client_name="=Budget")
    fresh.tokens(client_id)
    (entry,) = fresh.server.grants.connected_apps(fresh.user.id)
    read = ("listTransactions", "getTransaction", "search_transactions", "somethingNew")
    for operation in read:
        fresh.server.record.note(fresh.user.id, operation, grant_id=entry.grant.id, client_id=client_id)
    browser = signed_in(fresh)
    page = browser.client.get("/account").text
    assert "<span>Transactions</span> <small>3 times" in page
    assert "<span>somethingNew</span> <small>once" in page
    assert "<span>Signed in</span> <small>2 times" in page
    told = browser.client.get("/account/record.json")
    assert told.headers["content-disposition"] == 'attachment; filename="record.json"'
    assert {row["operation"]: row["app"] for row in told.json()} == {
        "signIn": None,
        "giveConsent": {"id": client_id, "name": "=Budget", "grant": None},
        **{name: {"id": client_id, "name": "=Budget", "grant": entry.grant.id} for name in read},
    }
    rows = list(csv.DictReader(io.StringIO(browser.client.get("/account/record.csv").text)))
    assert {row["app"] for row in rows} == {"'=Budget", ""}
    assert {row["hour"] for row in rows} == {"2026-11-20T12:00:00.000Z"}


@pytest.mark.requirement("oauth.record")
@pytest.mark.parametrize("kind", ["csv", "json"])
def test_nobody_else_gets_it(fresh: Any, kind: str) -> None:
    fresh.tokens()
    assert fresh.browser().client.get(f"/account/record.{kind}").headers["location"] == "/oauth/login"
    assert "giveConsent" not in signed_in(fresh, "bob").client.get(f"/account/record.{kind}").text


@pytest.mark.requirement("oauth.record")
def test_the_files_are_read_and_sent_in_pieces_and_lose_no_hour(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_record, "ROWS_AT_ONCE", 2)
    for _ in range(2):
        fresh.clock.forward(hours=1)
        for grant_id in ("g1", "g2"):
            fresh.server.record.note(fresh.user.id, "getSnapshot", grant_id=grant_id, client_id="c")
            fresh.server.record.note(fresh.user.id, "listAccounts", grant_id=grant_id, client_id="c")
        fresh.server.record.write()
    expected = [
        (f"2026-11-20T{hour}:00:00.000Z", grant, operation)
        for hour in ("14", "13")
        for grant in ("g1", "g2")
        for operation in ("getSnapshot", "listAccounts")
    ]
    pieces = [len(piece) for piece in fresh.server.record.hours(fresh.user.id)]
    assert pieces == [2, 2, 2, 2, 0]
    browser = signed_in(fresh)
    rows = list(csv.DictReader(io.StringIO(browser.client.get("/account/record.csv").text)))
    assert [(row["hour"], row["grant"], row["operation"]) for row in rows if row["grant"]] == expected
    told = [row for row in browser.client.get("/account/record.json").json() if row["app"]]
    assert [(row["hour"], row["app"]["grant"], row["operation"]) for row in told] == expected


@pytest.mark.requirement("oauth.record")
def test_an_empty_record_is_a_file_too(fresh: Any) -> None:
    browser = signed_in(fresh)
    fresh.server.record.write()
    fresh.database.execute("DELETE FROM access_record WHERE user_id = $1", fresh.user.id)
    assert browser.client.get("/account/record.json").json() == []
    assert browser.client.get("/account/record.csv").text == (
        "hour,app,app_id,grant,operation,calls,refusals,last_at\r\n"
    )


@pytest.mark.requirement("oauth.record")
def test_a_store_that_does_not_answer_is_told_before_a_file_begins(fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = signed_in(fresh)

    def hours(*_: Any, **__: Any) -> Any:
        yield from ()  # as the real one, it asks when the first piece is taken
        raise StoreUnavailable

    monkeypatch.setattr(access_record, "hours", hours)
    assert browser.client.get("/account/record.csv").status_code == 503


@pytest.mark.requirement("oauth.record")
def test_ten_thousand_sums_are_added_in_one_statement(fresh: Any) -> None:
    counted = {(fresh.user.id, f"g{number}", "c", "listAccounts"): Count(1, 0) for number in range(10_000)}
    for _ in range(2):
        access_record.add(fresh.database, counted, now=fresh.clock())
    (row,) = fresh.database.rows("SELECT count(*) AS rows, CAST(sum(calls) AS BIGINT) AS calls FROM access_record")
    assert (row["rows"], row["calls"]) == (10_000, 20_000)


@pytest.mark.requirement("oauth.record")
def test_whatever_shows_bookings_is_called_by_words_that_people_know() -> None:
    assert KIND_OF.keys() >= OPERATIONS.keys() | TOOLS.keys()


@pytest.mark.requirement("oauth.record")
def test_what_an_app_read_stays_on_the_page_after_its_access_has_ended(fresh: Any) -> None:
    client_id = fresh.register(client_name="Gone")
    fresh.tokens(client_id)
    (entry,) = fresh.server.grants.connected_apps(fresh.user.id)
    fresh.server.record.note(fresh.user.id, "listTransactions", grant_id=entry.grant.id, client_id=client_id)
    fresh.server.record.note(fresh.user.id, "listAccounts", grant_id="g of a session", client_id=PAGE)
    fresh.server.grants.revoke(entry.grant.id, because="revoked by the user")
    page = signed_in(fresh).client.get("/account").text
    assert "“Gone”, which has no access any more" in page
    assert "“This website”, which has no access any more" in page
    fresh.clock.forward(days=200)
    page = signed_in(fresh).client.get("/account").text
    assert "<span>Transactions</span> <small>once" in page
    fresh.clock.forward(days=200)
    assert "Gone" not in signed_in(fresh).client.get("/account").text
