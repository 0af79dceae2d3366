"""The connector for finAPI: each connection has a user of its own there, whose password nobody else knows.

A person signs in at the bank in finAPI's Web Form, and does so again when the bank requires it. A sync asks finAPI for
a background update, waits for that task, and reads the bookings of the whole period that the bank reports, new or not.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import partial
from secrets import token_hex, token_urlsafe
from typing import Any
from urllib.parse import urlsplit

from analytics.messages import Message
from analytics.records import Batch
from connectors.connecting import Done, LiveSource, Question, Redirect, Reply, Step
from connectors.connector import (
    CUT_OFF,
    Connection,
    ConsentExpired,
    ConsentRevoked,
    Json,
    LeftOut,
    Misconfigured,
    Person,
    ProviderUnavailable,
    Ready,
    UserActionRequired,
    Waiting,
)
from connectors.outgoing_http import Provider, ProviderAnswer
from connectors.reachable import is_reachable
from connectors.sources.finapi.answers import consent_end, needs_person, object_of, objects_of, was_not_refreshed
from connectors.sources.finapi.records import TOLD_DAYS, records
from connectors.text import clean, is_currency

TASK_PAUSE = 2.0  # finAPI allows one request a second
UPDATE_PAUSE = 10.0  # after 423: an update of this bank connection is already running
FORM_PAUSE = 3.0
PAGE_ROWS = 500
PAGES_MAX = 1_000
PAGE_REFUSED = (400, 404, 422)
OVERLAP = timedelta(days=1)
TOLD_AGAIN = timedelta(days=TOLD_DAYS + 1)  # the whole period, so that removed bookings and changed ids are noticed
DEVICE = re.compile(r"\(([^()]+)\)")
OPEN_FORMS = ("NOT_YET_OPENED", "IN_PROGRESS")
RUNNING_TASKS = ("NOT_YET_STARTED", "IN_PROGRESS")

NOT_SET = "finAPI needs a client of yours. Set BANKDATA_FINAPI_CLIENT and BANKDATA_FINAPI_SECRET_FILE."
CLIENT_REFUSED = "finAPI refuses this client. Look at BANKDATA_FINAPI_CLIENT and BANKDATA_FINAPI_SECRET_FILE."
ASKING = Message("finAPI asks the bank whether it wants to see you.")
FORM_ENDED = "The sign-in at the bank was not completed. Begin again."

Ask = Callable[..., ProviderAnswer]
"""A request without its headers, such as `partial(provider.get, path)`."""


class FinApi(LiveSource):
    """The source finAPI. The setting of a connection is {"bank_connection": its id at finAPI}, its secrets are {"user",
    "password"} of its user there and, while it is valid, {"token"}."""

    name = "finapi"
    title = "finAPI"
    about = Message("Banks in Germany and Europe, for companies with a contract with finAPI.")
    is_local = False
    unattended_syncs_max = 4

    def __init__(self, address: str, form_address: str, client: str, secret: Callable[[], str]) -> None:
        """Prepare requests to the addresses of Access and Web Form with the operator's client; `secret` reads the
        client's secret when it is needed."""
        self._access, self._forms = Provider(address), Provider(form_address)
        self._client, self._secret = client, secret

    @property
    def is_set_up(self) -> bool:
        """Whether the operator has a client at finAPI."""
        return bool(self._client)

    def next_step(self, connection: Connection, answer: Reply, *, now: datetime) -> Step:
        """The next step. To connect: make a user at finAPI and send the person to a form. To renew: ask the bank
        whether it requires the person, and send them to a form only then. Afterwards: look whether form or update has
        ended."""
        memo = answer.memo
        if not memo:
            if connection.secrets.get("user"):
                with suppress(ConsentRevoked):
                    return self._renewal(self._user(connection), _bank_connection(connection))
            return self._first_form()
        user = _UserAtFinApi(self, memo["secrets"])
        if "task" in memo:
            return self._step_after_asking(user, memo, now)
        form = user.members(partial(self._forms.get, f"/api/webForms/{memo['form']}"))
        if form.get("status") in OPEN_FORMS:
            return Redirect(url=memo["url"], again_after=FORM_PAUSE, memo=memo)
        made = memo["bank_connection"] or object_of(form, "payload").get("bankConnectionId")
        if form.get("status") != "COMPLETED" or not isinstance(made, int):
            raise UserActionRequired(FORM_ENDED, detail=f"form {form.get('status')}")
        return self._finish(user, made)

    def is_same_login(self, known: Connection, done: Done) -> bool | None:
        """Always None: each connection has a user of its own at finAPI, so nothing can be compared."""

    def disconnect(self, connection: Connection, *, now: datetime) -> None:  # noqa: ARG002 - as above
        """Delete the bank connection at finAPI, if it is still there, then the user to whom it belonged."""
        user = self._user(connection)
        path = f"/api/v2/bankConnections/{_bank_connection(connection)}"
        user.ask(partial(self._access.delete, path), fine=(200, 204, 404))
        user.ask(partial(self._access.delete, "/api/v2/users"), fine=(200, 204))

    def start_refresh(self, connection: Connection, *, now: datetime) -> Json:  # noqa: ARG002 - as above
        """Have finAPI ask the bank, and return the handle with the id of the task, None where another update is
        running; `poll_refresh` then begins one later."""
        user, number = self._user(connection), _bank_connection(connection)
        return {"task": self._begin_update(user, number, connection.attended)}

    def poll_refresh(self, connection: Connection, handle: Json, *, now: datetime) -> Waiting | Ready:
        """Waiting while the update runs, then Ready with the end of the consent. Without a task, because another update
        was running, one is begun. Raises UserActionRequired, ConsentExpired, and ProviderUnavailable for an update that
        failed."""
        user, number = self._user(connection), _bank_connection(connection)
        if handle["task"] is None:
            task = self._begin_update(user, number, connection.attended)
            return Waiting(seconds=UPDATE_PAUSE if task is None else TASK_PAUSE, handle={"task": task})
        state = self._task(user, handle["task"])
        match state.get("status"):
            case status if status in RUNNING_TASKS:
                return Waiting(seconds=TASK_PAUSE)
            case "COMPLETED":
                return self._update_state(user, number, now)
            case "WEB_FORM_REQUIRED":
                raise UserActionRequired(detail="WEB_FORM_REQUIRED")
        code = str(object_of(state, "payload").get("errorCode"))
        if code == "BANK_SERVER_REJECTION" and needs_person(self._bank_connection(user, number)):
            raise UserActionRequired(detail=code)
        raise ProviderUnavailable(detail=f"task {state.get('status')} {code}")

    def fetch(
        self,
        connection: Connection,
        handle: Json,
        *,
        cursor: Json | None,
        today: date,
    ) -> Iterator[Batch | LeftOut]:
        """A batch per account with all pending bookings and its booked ones: all that finAPI has the first time or
        after the list broke off, else those of at least the last 90 days. An account that is kept in points or the
        like, which are no currency, is only yielded as LeftOut; one whose list broke off, or that the bank did not
        refresh, comes as a batch, then as LeftOut."""
        user, number = self._user(connection), _bank_connection(connection)
        asked = partial(self._access.get, "/api/v2/accounts", parameters={"bankConnectionIds": str(number)})
        accounts = objects_of(user.members(asked), "accounts")
        since = min(date.fromisoformat(cursor["imported_until"]), today - TOLD_AGAIN) if cursor is not None else None
        known = {str(each) for each in cursor["accounts"]} if cursor is not None else set()
        whole: list[str] = []
        for account in accounts:
            name = clean(str(account.get("accountName") or "")) or str(account.get("id"))
            if not is_currency(account.get("accountCurrency") or "EUR"):
                yield LeftOut(name=name, reason="Its currency is no currency.")
                continue
            own = str(account.get("id"))
            rows, is_whole = self._bookings(user, own, since if own in known else None)
            whole += [own] if is_whole else []  # another account is asked for everything the next time
            waiting = self._pending_bookings(user, own)
            yield Batch(
                id=f"finapi:{connection.id}:{own}:{handle['task']}",
                name=name,
                records=records(
                    account,
                    rows,
                    waiting,
                    bank_name=connection.bank_name,
                    is_whole=is_whole,
                    is_first=own not in known,
                ),
                cursor={"imported_until": str(today - OVERLAP), "accounts": list(whole)},
            )
            if not is_whole:
                yield LeftOut(name=name, reason=CUT_OFF)
            if was_not_refreshed(account):
                yield LeftOut(name=name, reason="The bank gave nothing new of this account.")

    def token(self, form: Mapping[str, str]) -> str:
        """A new access token, of the operator's client or of a user, as the grant in `form` says. Raises Misconfigured,
        ConsentRevoked or UserActionRequired."""
        if not self._client:
            raise Misconfigured(NOT_SET)
        answer = self._access.post(
            "/api/v2/oauth/token",
            form={**form, "client_id": self._client, "client_secret": self._secret()},
            headers=_request_id(),
        )
        if answer.status == 200:
            return str(answer.members()["access_token"])
        if answer.status == 423:
            raise UserActionRequired("finAPI has locked this access. Connect the bank again.", detail="status 423")
        said = answer.members().get("error")
        if form["grant_type"] == "client_credentials" or said in ("invalid_client", "unauthorized_client"):
            raise Misconfigured(CLIENT_REFUSED, detail=f"status {answer.status}")
        raise ConsentRevoked(detail=f"status {answer.status} for a user's token")

    def _user(self, connection: Connection) -> "_UserAtFinApi":
        if not connection.secrets.get("user"):
            raise UserActionRequired(detail="no user at finAPI")
        return _UserAtFinApi(self, connection.secrets, connection.keep_secrets)

    def _first_form(self) -> Redirect:
        """Make a finAPI user for this connection and a form in which the person chooses the bank and signs in, and
        return the redirect to the form."""
        secrets = {"user": f"bankdata-{token_hex(12)}", "password": token_urlsafe(24)}
        own = self.token({"grant_type": "client_credentials"})
        made = self._access.post(
            "/api/v2/users",
            document={"id": secrets["user"], "password": secrets["password"]},
            headers={"Authorization": f"Bearer {own}", **_request_id()},
        )
        if made.status != 201:
            raise ProviderUnavailable(detail=f"status {made.status} for a user")
        user = _UserAtFinApi(self, secrets)
        form = partial(self._forms.post, "/api/webForms/bankConnectionImport", document={})
        return self._redirect_to(user.members(form), user)

    def _renewal(self, user: "_UserAtFinApi", number: int) -> Question:
        task = self._begin_update(user, number)
        if task is None:
            raise ProviderUnavailable("finAPI is asking this bank at this moment. Try again in a minute.")
        return _look_again({"task": task, "secrets": user.secrets, "bank_connection": number})

    def _step_after_asking(self, user: "_UserAtFinApi", memo: Json, now: datetime) -> Step:
        """The step after the bank was asked: ask again later while the task runs; send the person to a form if the bank
        requires them, or to a new one if the consent has ended; else Done."""
        task = self._task(user, memo["task"])
        number = int(memo["bank_connection"])
        if task.get("status") == "WEB_FORM_REQUIRED":
            return self._redirect_to(object_of(object_of(task, "payload"), "webForm"), user, number)
        try:
            if task.get("status") in RUNNING_TASKS or isinstance(self._update_state(user, number, now), Waiting):
                return _look_again(memo)
        except ConsentExpired:  # the bank did not require the person, but its consent has ended
            return self._first_form()
        if task.get("status") != "COMPLETED":
            raise ProviderUnavailable(detail=f"task {task.get('status')}")
        return self._finish(user, number)

    def _redirect_to(self, form: Json, user: "_UserAtFinApi", number: int | None = None) -> Redirect:
        url = str(form.get("url"))
        here = urlsplit(self._forms.address)
        if not is_reachable(url) or urlsplit(url).netloc != here.netloc:
            raise ProviderUnavailable("finAPI named a form that is not on its own host.", detail="form elsewhere")
        memo = {"form": str(form.get("id")), "url": url, "secrets": user.secrets, "bank_connection": number}
        return Redirect(url=url, again_after=FORM_PAUSE, memo=memo)

    def _finish(self, user: "_UserAtFinApi", number: int) -> Done:
        bank_connection = self._bank_connection(user, number)
        return Done(
            bank_name=clean(str(object_of(bank_connection, "bank").get("name") or "")) or self.title,
            settings={"bank_connection": number},
            secrets=user.secrets,
            consent_expires_at=consent_end(bank_connection),
        )

    def _begin_update(self, user: "_UserAtFinApi", number: int, attended: Person | None = None) -> str | None:
        """Begin a task that asks the bank, and return its id; None where one is already running. `attended` is the user
        if they are present, of whom the bank is told."""
        wanted = {"bankConnectionId": number, **_metadata(attended)}
        update = partial(self._forms.post, "/api/tasks/backgroundUpdate", document=wanted)
        answer = user.ask(update, fine=(200, 201, 423))
        return None if answer.status == 423 else str(answer.members()["id"])

    def _update_state(self, user: "_UserAtFinApi", number: int, now: datetime) -> Waiting | Ready:
        """Ready when the data that a task fetched can be read, else Waiting. Raises ConsentExpired."""
        bank_connection = self._bank_connection(user, number)
        if bank_connection.get("updateStatus") == "IN_PROGRESS":
            return Waiting(seconds=TASK_PAUSE)
        until = consent_end(bank_connection)
        if until is not None and until <= now:
            raise ConsentExpired(detail="aisConsent")
        return Ready(consent_expires_at=until)

    def _bank_connection(self, user: "_UserAtFinApi", number: int) -> Json:
        return user.members(partial(self._access.get, f"/api/v2/bankConnections/{number}"))

    def _task(self, user: "_UserAtFinApi", task: str) -> Json:
        return user.members(partial(self._forms.get, f"/api/tasks/{task}"))

    def _bookings(self, user: "_UserAtFinApi", account: str, since: date | None) -> tuple[list[Json], bool]:
        """The account's bookings from this day on (None: all), each once, and whether they are complete: not where a
        page before the last has nothing new, where a page after the first is refused, or where there are too many
        pages."""
        bookings: list[Json] = []
        asked = {"view": "bankView", "accountIds": account, "perPage": str(PAGE_ROWS), "order": "id,asc"}
        if since is not None:
            asked["minBankBookingDate"] = since.isoformat()
        for page in range(1, PAGES_MAX + 1):
            request = partial(self._access.get, "/api/v2/transactions", parameters={**asked, "page": str(page)})
            answer = user.ask(request, fine=(200,) if page == 1 else (200, *PAGE_REFUSED))
            if answer.status != 200:
                break
            members, known = answer.members(), {str(each.get("id")) for each in bookings}
            new = [each for each in objects_of(members, "transactions") if str(each.get("id")) not in known]
            bookings += new
            pages = object_of(members, "paging").get("pageCount")
            if not isinstance(pages, int):
                raise ProviderUnavailable("finAPI sent a damaged answer.", detail="no pageCount")
            if page >= pages:
                return bookings, True
            if not new:
                break
        return bookings, False

    def _pending_bookings(self, user: "_UserAtFinApi", account: str) -> Sequence[Json] | None:
        """The bookings that the bank announces; None where this finAPI does not provide them."""
        request = partial(self._access.get, "/api/v2/pendingTransactions", parameters={"accountIds": account})
        answer = user.ask(request, fine=(200, 404))
        return objects_of(answer.members(), "pendingTransactions") if answer.status == 200 else None


class _UserAtFinApi:
    """Sends requests as one user at finAPI, with a token that is renewed once where it is refused; a new one is passed
    to `keep` with the other secrets."""

    def __init__(self, source: FinApi, secrets: Json, keep: Callable[[Json], None] = lambda _: None) -> None:
        self.secrets = dict(secrets)
        self._source, self._keep = source, keep

    def members(self, ask: Ask) -> dict[str, Any]:
        """The JSON object in an answer with status 200 or 201."""
        return self.ask(ask).members()

    def ask(self, ask: Ask, fine: Collection[int] = (200, 201)) -> ProviderAnswer:
        """The answer, if its status is in `fine`. Raises the SourceError that another status means."""
        answer = ask(headers=self._headers()) if "token" in self.secrets else None
        if answer is None or answer.status == 401:
            self._sign_in()
            answer = ask(headers=self._headers())
        if answer.status in fine:
            return answer
        match answer.status:
            case 401 | 404:
                raise ConsentRevoked(detail=f"status {answer.status}")
            case 402 | 403:
                raise Misconfigured(CLIENT_REFUSED, detail=f"status {answer.status}")
            case 423:
                raise ProviderUnavailable(detail="status 423", retry_after=UPDATE_PAUSE)
        raise ProviderUnavailable(detail=f"status {answer.status}")

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secrets['token']}", **_request_id()}

    def _sign_in(self) -> None:
        name, password = str(self.secrets["user"]), str(self.secrets["password"])
        form = {"grant_type": "password", "username": name, "password": password}
        self.secrets["token"] = self._source.token(form)
        self._keep(self.secrets)


def _request_id() -> dict[str, str]:
    """A header with a request id, which finAPI's support asks for."""
    return {"X-Request-Id": f"bankdata-{token_hex(8)}"}


def _metadata(attended: Person | None) -> Json:
    """The facts about a user who is present that finAPI passes on to the bank, all or nothing: the schema UserMetadata
    of Web Form 2.0.

    Browsers name device and system in the first brackets of their User-Agent (RFC 9110, 10.1.5).
    """
    if attended is None:
        return {}
    named = DEVICE.search(attended.user_agent)
    device = named[1] if named else attended.user_agent
    said = {"ipAddress": attended.address, "deviceOs": device, "userAgent": attended.user_agent}
    return {"userMetadata": said}


def _look_again(memo: Json) -> Question:
    return Question(text=ASKING, again_after=FORM_PAUSE, memo=memo)


def _bank_connection(connection: Connection) -> int:
    return int(connection.settings["bank_connection"])
