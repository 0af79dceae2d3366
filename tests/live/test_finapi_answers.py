"""What each answer of finAPI means for the step that is taken, to the word; the connector is asked directly."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from analytics.records import Batch, StatementRecord, TransactionRecord
from connectors.connecting import Done, Question, Redirect, Reply, Step
from connectors.connector import (
    CUT_OFF,
    Connection,
    ConsentExpired,
    ConsentRevoked,
    HasNews,
    Json,
    LeftOut,
    Misconfigured,
    Person,
    ProviderUnavailable,
    Ready,
    SourceError,
    UserActionRequired,
    Waiting,
)
from connectors.sources.finapi import connector
from connectors.sources.finapi.connector import FinApi
from tests.simulators.finapi import CLIENT, SECRET, FinApiHost, booking, example
from tests.simulators.web_bank import Said, serving

pytestmark = pytest.mark.requirement("live.finapi")

TODAY = date(2026, 11, 20)
NOW = datetime.fromisoformat("2026-11-20T12:00")
NEW = Connection(id="con_1", user_id="u1", bank_name="Beispielbank", settings={})
UNREACHED = "The bank could not be reached."
DAMAGED = "finAPI sent a damaged answer."
SIGN_IN = "The bank asks for a sign-in. Renew the connection at the bank."
EXPIRED = "The consent for this bank connection has expired. Connect the bank again."
REVOKED = "The consent for this bank connection was withdrawn. Connect the bank again."
CLIENT_REFUSED = "finAPI refuses this client. Look at BANKDATA_FINAPI_CLIENT and BANKDATA_FINAPI_SECRET_FILE."
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"


@pytest.fixture(scope="module")
def shared() -> Iterator[FinApiHost]:
    with serving(FinApiHost(example(TODAY))) as host:
        yield host


@pytest.fixture
def host(shared: FinApiHost) -> FinApiHost:
    shared.service = example(TODAY)
    shared.service.polls = 0
    shared.asked.clear()
    return shared


@pytest.fixture
def source(host: FinApiHost) -> Iterator[FinApi]:
    with asking(host) as source:
        yield source


@contextmanager
def asking(host: FinApiHost, *, client: str = CLIENT, secret: str = SECRET) -> Iterator[FinApi]:
    source = FinApi(host.address, host.address, client, lambda: secret)
    with closing(source._access), closing(source._forms):
        yield source


@pytest.fixture
def connected(host: FinApiHost, source: FinApi) -> Connection:
    """A bank connection whose person has signed in."""
    opened = step(source, NEW)
    host.service.sign_in()
    done = step(source, NEW, opened)
    assert isinstance(done, Done)
    return replace(NEW, settings=done.settings, secrets=done.secrets)


def step(source: FinApi, connection: Connection, before: Step | None = None) -> Step:
    memo = before.memo if isinstance(before, Question | Redirect) else {}
    return source.next_step(connection, Reply(return_url="", state="", memo=memo), now=NOW)


def fetched(source: FinApi, connection: Connection, cursor: Json | None = None) -> list[Batch | LeftOut]:
    found = []
    for each in source.fetch(connection, {"task": "task-1"}, cursor=cursor, today=TODAY):
        found.append(each)
        if isinstance(each, Batch):
            source.settle(connection, {}, batch=each, refusal=None)
    return found


def told(each: Batch | LeftOut) -> tuple[str, list[str | None], StatementRecord]:
    """The account's name, the ids of its bookings (None for pending ones), and its balance."""
    assert isinstance(each, Batch)
    _, *bookings, statement = list(each.records)
    assert isinstance(statement, StatementRecord)
    return (
        each.name or "",
        [row.provider_id for row in bookings if isinstance(row, TransactionRecord)],
        statement,
    )


def test_a_server_without_a_client_at_finapi_says_which_settings_it_needs(host: FinApiHost) -> None:
    with asking(host, client="") as source, pytest.raises(Misconfigured) as refusal:
        step(source, NEW)
    assert not source.is_set_up
    assert str(refusal.value) == (
        "finAPI needs a client of yours. Set BANKDATA_FINAPI_CLIENT and BANKDATA_FINAPI_SECRET_FILE."
    )
    assert host.asked == []


def test_a_secret_that_finapi_does_not_know_is_the_operators_to_mend(host: FinApiHost) -> None:
    with asking(host, secret="another") as source, pytest.raises(Misconfigured) as refusal:
        step(source, NEW)
    assert source.is_set_up
    assert str(refusal.value) == CLIENT_REFUSED


@pytest.mark.parametrize(
    ("path", "said", "kind", "sentence"),
    [
        ("/api/v2/users", Said(status=422, document={}), ProviderUnavailable, UNREACHED),
        (
            "/api/webForms",
            Said(status=201, document={"id": "1", "url": "https://elsewhere.example/webForm/1"}),
            ProviderUnavailable,
            "finAPI named a form that is not on its own host.",
        ),
        (
            "/api/webForms",
            Said(status=201, document={"id": "1", "url": "javascript:alert(1)"}),
            ProviderUnavailable,
            "finAPI named a form that is not on its own host.",
        ),
        ("/api/webForms", Said(status=402, document={}), Misconfigured, CLIENT_REFUSED),
        ("/api/webForms", Said(status=403, document={}), Misconfigured, CLIENT_REFUSED),
        ("/api/webForms", Said(status=400, document={}), ProviderUnavailable, UNREACHED),
    ],
)
def test_without_a_form_of_its_own_nothing_is_connected(
    host: FinApiHost, source: FinApi, path: str, said: Said, kind: type[SourceError], sentence: str
) -> None:
    host.service.broken[path] = said
    with pytest.raises(kind) as refusal:
        step(source, NEW)
    assert str(refusal.value) == sentence


@pytest.mark.parametrize("status", ["COMPLETED_WITH_ERROR", "ABORTED", "COMPLETED"])
def test_a_form_that_ends_without_a_bank_connection_begins_anew(host: FinApiHost, source: FinApi, status: str) -> None:
    opened = step(source, NEW)
    assert isinstance(opened, Redirect)
    assert step(source, NEW, opened) == opened  # nobody has signed in yet
    host.service.forms[opened.memo["form"]] = status
    with pytest.raises(UserActionRequired) as refusal:
        step(source, NEW, opened)
    assert str(refusal.value) == "The sign-in at the bank was not completed. Begin again."


@pytest.mark.parametrize(
    ("secrets", "said", "kind", "sentence"),
    [
        ({}, None, UserActionRequired, SIGN_IN),
        ({"password": "changed"}, None, ConsentRevoked, REVOKED),
        (
            {},
            Said(status=423, document={}),
            UserActionRequired,
            "finAPI has locked this access. Connect the bank again.",
        ),
        ({}, Said(status=400, document={"error": "unauthorized_client"}), Misconfigured, CLIENT_REFUSED),
    ],
)
def test_a_user_whom_finapi_lets_in_no_more(
    host: FinApiHost,
    source: FinApi,
    connected: Connection,
    secrets: dict[str, str],
    said: Said | None,
    kind: type[SourceError],
    sentence: str,
) -> None:
    kept = {name: value for name, value in connected.secrets.items() if name != "token"} | secrets
    if said is not None:
        host.service.broken["/oauth/token"] = said
    elif not secrets:
        kept = {}
    with pytest.raises(kind) as refusal:
        source.start_refresh(replace(connected, secrets=kept), now=NOW)
    assert str(refusal.value) == sentence


def test_who_was_deleted_at_finapi_is_renewed_with_a_new_user(
    host: FinApiHost, source: FinApi, connected: Connection
) -> None:
    host.service.users.clear()
    host.service.expire_tokens()
    assert isinstance(step(source, connected), Redirect)
    assert len(host.service.users) == 1


def test_to_renew_the_bank_is_asked_and_may_want_to_see_the_person(
    host: FinApiHost, source: FinApi, connected: Connection
) -> None:
    host.service.polls, host.service.task = 1, "WEB_FORM_REQUIRED"
    asking = step(source, connected)
    assert isinstance(asking, Question)
    assert asking.text == "finAPI asks the bank whether it wants to see you."
    assert step(source, connected, asking) == asking
    opened = step(source, connected, asking)
    assert isinstance(opened, Redirect)
    host.service.sign_in()
    done = step(source, connected, opened)
    assert isinstance(done, Done)
    assert (done.settings, done.bank_name) == (connected.settings, "Beispielbank")


def test_to_renew_waits_until_what_the_bank_gave_is_there(
    host: FinApiHost, source: FinApi, connected: Connection
) -> None:
    asking = step(source, connected)
    host.service.update_status = "IN_PROGRESS"
    assert step(source, connected, asking) == asking
    host.service.update_status = "READY"
    assert isinstance(step(source, connected, asking), Done)


def test_a_consent_that_is_over_though_the_bank_asks_for_nobody_opens_a_new_form(
    host: FinApiHost, source: FinApi, connected: Connection
) -> None:
    asking = step(source, connected)
    host.service.broken["/bankConnections"] = bank_connection(["2026-11-20 12:00:00.000"])
    assert isinstance(step(source, connected, asking), Redirect)


def test_a_bank_that_is_asked_already_is_renewed_a_minute_later(
    host: FinApiHost, source: FinApi, connected: Connection
) -> None:
    host.service.is_locked = 1
    with pytest.raises(ProviderUnavailable) as refusal:
        step(source, connected)
    assert str(refusal.value) == "finAPI is asking this bank at this moment. Try again in a minute."


def test_a_renewal_that_the_bank_does_not_answer_fails(host: FinApiHost, source: FinApi, connected: Connection) -> None:
    asking = step(source, connected)
    host.service.task, host.service.error_code = "COMPLETED_WITH_ERROR", "INTERNAL_ERROR"
    with pytest.raises(ProviderUnavailable) as refusal:
        step(source, connected, asking)
    assert str(refusal.value) == UNREACHED


@pytest.mark.parametrize(
    ("agent", "device"),
    [
        (FIREFOX, "X11; Linux x86_64; rv:145.0"),
        ("PlainBrowser/1.0", "PlainBrowser/1.0"),
    ],
)
def test_of_a_person_who_is_there_finapi_is_told_all_that_it_passes_on(
    host: FinApiHost, source: FinApi, connected: Connection, agent: str, device: str
) -> None:
    person = Person(address="192.0.2.7", user_agent=agent, accept="text/html", accept_language="de")
    source.start_refresh(replace(connected, attended=person), now=NOW)
    source.poll_refresh(replace(connected, attended=person), {"task": None}, now=NOW)
    number = connected.settings["bank_connection"]
    metadata = {"ipAddress": "192.0.2.7", "deviceOs": device, "userAgent": agent}
    assert updates(host) == [{"bankConnectionId": number, "userMetadata": metadata}] * 2


def test_of_somebody_who_is_away_finapi_is_told_nothing(
    host: FinApiHost, source: FinApi, connected: Connection
) -> None:
    source.start_refresh(connected, now=NOW)
    assert updates(host) == [{"bankConnectionId": connected.settings["bank_connection"]}]


def updates(host: FinApiHost) -> list[dict[str, Any]]:
    return [each.document() for each in host.asked if each.path == "/api/tasks/backgroundUpdate"]


def test_an_update_that_runs_already_is_waited_for_and_then_asked_for_again(
    host: FinApiHost, source: FinApi, connected: Connection
) -> None:
    host.service.is_locked = 2
    handle = source.start_refresh(connected, now=NOW)
    assert handle == {"task": None}
    assert source.poll_refresh(connected, handle, now=NOW) == Waiting(seconds=10, handle={"task": None})
    begun = source.poll_refresh(connected, handle, now=NOW)
    assert isinstance(begun, Waiting)
    assert begun.handle is not None
    assert (begun.seconds, begun.handle["task"]) == (2, next(iter(host.service.tasks)))


@pytest.mark.parametrize(
    ("consents", "until"),
    [
        (["2027-02-18 12:00:00.000"], datetime.fromisoformat("2027-02-18T12:00")),
        (["2027-02-18T12:00:00+01:00"], datetime.fromisoformat("2027-02-18T11:00")),
        (["2027-02-18 12:00:00.000", "2027-01-01 00:00:00.000", None], datetime.fromisoformat("2027-01-01")),
        ([None], None),
    ],
)
def test_the_consent_ends_with_the_first_of_them_in_utc(
    host: FinApiHost, source: FinApi, connected: Connection, consents: list[str | None], until: datetime | None
) -> None:
    handle = source.start_refresh(connected, now=NOW)
    host.service.broken["/bankConnections"] = bank_connection(consents)
    assert source.poll_refresh(connected, handle, now=NOW) == Ready(consent_expires_at=until)


@pytest.mark.parametrize(
    ("consents", "kind", "sentence"),
    [
        (["2026-11-20 12:00:00.000"], ConsentExpired, EXPIRED),
        (["soon"], ProviderUnavailable, DAMAGED),
    ],
)
def test_a_consent_that_is_over_or_unreadable_ends_the_sync(
    host: FinApiHost,
    source: FinApi,
    connected: Connection,
    consents: list[str | None],
    kind: type[SourceError],
    sentence: str,
) -> None:
    handle = source.start_refresh(connected, now=NOW)
    host.service.broken["/bankConnections"] = bank_connection(consents)
    with pytest.raises(kind) as refusal:
        source.poll_refresh(connected, handle, now=NOW)
    assert str(refusal.value) == sentence


def bank_connection(consents: list[str | None]) -> Said:
    interfaces = [{"aisConsent": {"expiresAt": each} if each else None} for each in consents]
    return Said(document={"id": 104, "updateStatus": "READY", "interfaces": interfaces})


@pytest.mark.parametrize(
    ("task", "code", "is_wanted", "kind", "sentence"),
    [
        ("WEB_FORM_REQUIRED", None, False, UserActionRequired, SIGN_IN),
        ("COMPLETED_WITH_ERROR", "BANK_SERVER_REJECTION", True, UserActionRequired, SIGN_IN),
        ("COMPLETED_WITH_ERROR", "BANK_SERVER_REJECTION", False, ProviderUnavailable, UNREACHED),
        ("COMPLETED_WITH_ERROR", "INTERNAL_ERROR", True, ProviderUnavailable, UNREACHED),
    ],
)
def test_what_a_task_ends_in(
    host: FinApiHost,
    source: FinApi,
    connected: Connection,
    task: str,
    code: str | None,
    is_wanted: bool,
    kind: type[SourceError],
    sentence: str,
) -> None:
    host.service.task, host.service.error_code, host.service.is_action_required = task, code, is_wanted
    handle = source.start_refresh(connected, now=NOW)
    with pytest.raises(kind) as refusal:
        source.poll_refresh(connected, handle, now=NOW)
    assert str(refusal.value) == sentence


def test_a_task_that_runs_is_looked_at_again_after_two_seconds(
    host: FinApiHost, source: FinApi, connected: Connection
) -> None:
    host.service.polls = 1
    handle = source.start_refresh(connected, now=NOW)
    assert source.poll_refresh(connected, handle, now=NOW) == Waiting(seconds=2)
    assert source.poll_refresh(connected, handle, now=NOW) == Ready(
        consent_expires_at=datetime.fromisoformat("2027-02-18")
    )


@pytest.mark.parametrize(
    ("statuses", "kind", "sentence", "retry_after"),
    [
        ((401, 401), ConsentRevoked, REVOKED, None),
        ((404,), ConsentRevoked, REVOKED, None),
        ((402,), Misconfigured, CLIENT_REFUSED, None),
        ((403,), Misconfigured, CLIENT_REFUSED, None),
        ((423,), ProviderUnavailable, UNREACHED, 10),
        ((400,), ProviderUnavailable, UNREACHED, None),
    ],
)
def test_what_a_status_means(
    host: FinApiHost,
    source: FinApi,
    connected: Connection,
    statuses: tuple[int, ...],
    kind: type[SourceError],
    sentence: str,
    retry_after: float | None,
) -> None:
    for part, status in zip(("/api/v2/accounts", "/v2/accounts"), statuses, strict=False):
        host.service.broken[part] = Said(status=status, document={})
    with pytest.raises(kind) as refusal:
        fetched(source, connected)
    assert (str(refusal.value), refusal.value.retry_after) == (sentence, retry_after)


def test_a_token_that_is_over_is_renewed_and_kept_at_once(
    host: FinApiHost, source: FinApi, connected: Connection
) -> None:
    kept: list[Json] = []
    host.service.expire_tokens()
    fetched(source, replace(connected, keep_secrets=kept.append))
    (secrets,) = kept
    assert secrets == {**connected.secrets, "token": secrets["token"]}
    assert secrets["token"] != connected.secrets["token"]


def test_each_account_is_a_batch_and_says_which_were_read_until_when(
    host: FinApiHost, source: FinApi, connected: Connection
) -> None:
    giro, card = fetched(source, connected)
    name, ids, statement = told(giro)
    assert (name, ids, statement.is_pending_complete) == ("Girokonto", ["1", "2", "3", "4", None], True)
    assert told(card)[:2] == ("Kreditkarte", [])
    assert isinstance(giro, Batch)
    assert isinstance(card, Batch)
    assert giro.cursor == {"imported_until": "2026-11-19", "accounts": ["81"]}
    assert card.cursor == {"imported_until": "2026-11-19", "accounts": ["81", "82"]}
    host.service.accounts[0].bookings.append(booking(5, TODAY, "-1.00", "Neu", "Neu"))
    host.service.accounts[1].bookings.append(booking(6, date(2026, 1, 2), "-2.00", "Alt", "Alt"))
    of_known_and_new = fetched(source, connected, cursor={"imported_until": "2026-11-19", "accounts": ["81"]})
    assert [told(each)[1] for each in of_known_and_new] == [["1", "2", "3", "4", "5", None], ["6"]]
    host.service.accounts[0].bookings.append(booking(7, TODAY - timedelta(days=91), "-1.00", "Alt", "Alt"))
    (giro, _) = fetched(source, connected, cursor={"imported_until": "2026-11-19", "accounts": ["81"]})
    assert told(giro)[1] == ["1", "2", "3", "4", "5", None]


def test_bookings_that_share_an_id_come_without_it(host: FinApiHost, source: FinApi, connected: Connection) -> None:
    host.service.accounts[0].bookings += [booking(5, TODAY, "-1.00", "Bus", "Bus"), booking(5, TODAY, "-1.00", "", "")]
    assert told(fetched(source, connected)[0])[1] == ["1", "2", "3", "4", None, None, None]


def test_what_a_finapi_does_not_say_of_pending_bookings_is_no_complete_set(
    host: FinApiHost, source: FinApi, connected: Connection
) -> None:
    host.service.broken["/pendingTransactions"] = Said(status=404, document={})
    _, ids, statement = told(fetched(source, connected)[0])
    assert (ids, statement.is_pending_complete) == (["1", "2", "3", "4"], False)


def test_an_account_without_a_currency_and_one_that_the_bank_did_not_refresh_are_named(
    host: FinApiHost, source: FinApi, connected: Connection
) -> None:
    giro, card = host.service.accounts
    giro.status, card.currency, card.name = "DOWNLOAD_FAILED", "Points", ""
    batch, stale, left_out = fetched(source, connected)
    assert told(batch)[0] == "Girokonto"
    assert stale == LeftOut(name="Girokonto", reason="The bank gave nothing new of this account.")
    assert left_out == LeftOut(name="82", reason="Its currency is no currency.")


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("/accounts", {"accounts": {}}),
        ("/accounts", {"accounts": ["81"]}),
        ("/accounts", {}),
        ("/transactions", {"transactions": None, "paging": {"pageCount": 1}}),
        ("/transactions", {"transactions": [], "paging": {"pageCount": "1"}}),
        ("/transactions", {"transactions": []}),
        ("/transactions", {"transactions": [{"id": 1}], "paging": {"pageCount": 1}}),
        ("/pendingTransactions", {"pendingTransactions": [{"bankBookingDate": "2026-11-20"}]}),
    ],
)
@pytest.mark.sampled
def test_an_answer_of_another_shape_is_damaged(
    host: FinApiHost, source: FinApi, connected: Connection, path: str, document: dict[str, Any]
) -> None:
    host.service.broken[f"/api/v2{path}"] = Said(document=document)
    with pytest.raises(ProviderUnavailable) as refusal:
        list(map(told, fetched(source, connected)))
    assert str(refusal.value) == DAMAGED


def test_pages_end_at_the_last_one_that_is_allowed(
    host: FinApiHost, source: FinApi, connected: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.service.page_size = 2
    monkeypatch.setattr(connector, "PAGES_MAX", 2)
    assert told(fetched(source, connected)[0])[1] == ["1", "2", "3", "4", None]
    monkeypatch.setattr(connector, "PAGES_MAX", 1)
    current, left_out, card = fetched(source, connected)
    assert told(current)[1] == ["1", "2", None]
    assert left_out == LeftOut(name="Girokonto", reason=CUT_OFF)
    assert isinstance(card, Batch)
    assert card.cursor == {"imported_until": "2026-11-19", "accounts": ["82"]}


@pytest.mark.parametrize(
    ("status", "document"),
    [
        (200, {"transactions": [], "paging": {"pageCount": 9}}),
        (200, {"transactions": [{"id": 1}, {"id": 2}], "paging": {"pageCount": 9}}),
        (400, {}),
        (404, {}),
        (422, {}),
    ],
)
@pytest.mark.sampled
def test_a_page_that_says_nothing_new_or_is_refused_ends_the_round_of_its_account_and_the_next_one_is_whole(
    host: FinApiHost, source: FinApi, connected: Connection, status: int, document: Any
) -> None:
    host.service.page_size = 2
    host.service.broken["/api/v2/transactions?page=2"] = Said(status=status, document=document)
    current, left_out, card = fetched(source, connected, {"imported_until": "2026-01-01", "accounts": ["81"]})
    assert told(current)[1] == ["1", "2", None]
    assert left_out == LeftOut(name="Girokonto", reason=CUT_OFF)
    assert isinstance(card, Batch)
    again, _ = fetched(source, connected, card.cursor)
    assert told(again)[1] == ["1", "2", "3", "4", None]


def test_who_disconnects_is_deleted_there_even_where_the_bank_connection_is_gone(
    host: FinApiHost, source: FinApi, connected: Connection
) -> None:
    host.service.broken["/bankConnections"] = Said(status=404, document={})
    source.disconnect(connected, now=NOW)
    assert host.service.users == {}


def test_no_look_is_free(source: FinApi) -> None:
    assert not isinstance(source, HasNews)
