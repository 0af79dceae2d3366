"""Outgoing requests to banks and data providers: the one HTTP client for all of them.

A `Provider` asks only one host, the one in the settings, and follows no redirects. Answers are bounded in time, size
and depth. Messages name the host and the status, never an address or a body, which may contain secrets.
"""

import asyncio
import json
import ssl
import threading
import time
from collections.abc import AsyncIterable, Callable, Coroutine, Iterable, Mapping
from contextvars import ContextVar
from datetime import datetime
from decimal import Decimal, InvalidOperation
from email.utils import parsedate_to_datetime
from functools import cache, cached_property
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct, field

from analytics.messages import Message
from analytics.records import Discreet
from connectors.connector import Json, ProviderUnavailable, RateLimited
from connectors.reachable import is_reachable

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS_MAX = 5.0
SILENCE_SECONDS_MAX = 60.0  # banks may take 30 while one waits
REQUEST_SECONDS_MAX = 120.0
ANSWER_BYTES_MAX = 20_000_000
DEPTH_MAX = 64
PAUSES = (0.25, 1.0)  # seconds before a GET is tried again; short enough for any job
PASSING = (502, 503, 504)  # statuses of a proxy in between, which a second try may not meet
RETRY_AFTER_MAX = 86_400.0

_STARTING = threading.Lock()

Method = Literal["GET", "POST", "DELETE"]
T = TypeVar("T")


class Outgoing(Discreet, frozen=True, kw_only=True):
    """A request to a provider; `sent` is the argument of httpx that has the body."""

    method: Method
    path: str
    parameters: Mapping[str, str] | None = None
    sent: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] | None = None
    auth: tuple[str, str] | None = None


class ProviderAnswer(Struct, frozen=True, kw_only=True):
    """The answer of a provider; `retry_after` are the seconds that it asks to wait, None for none. Redirects, 429, and
    statuses of 500 and more do not come here: `Provider` raises an error for them."""

    host: str
    status: int
    content_type: str
    retry_after: float | None
    body: bytes

    def document(self) -> Any:
        """The body as JSON, numbers with a point as Decimal. Raises ProviderUnavailable for anything else."""
        if not (self.content_type == "application/json" or self.content_type.endswith("+json")):
            raise ProviderUnavailable(
                "{host} answered with something that is not JSON.",
                host=self.host,
                detail=f"content type {self.content_type!r}",
            )
        try:
            document = json.loads(self.body, parse_float=Decimal, parse_constant=_refuse_constant)
        except (ValueError, InvalidOperation, RecursionError) as error:
            raise ProviderUnavailable(
                "{host} sent a damaged answer.",
                host=self.host,
                detail=f"{type(error).__name__} in {len(self.body)} bytes",
            ) from error
        _check_depth(self.host, document)
        return document

    def members(self) -> dict[str, Any]:
        """The body as a JSON object. Raises ProviderUnavailable for anything else."""
        document = self.document()
        if not isinstance(document, dict):
            raise ProviderUnavailable("{host} sent a damaged answer.", host=self.host, detail="no JSON object")
        return document

    def line(self) -> str:
        """The body as one line of ASCII text without spaces around it. Raises ProviderUnavailable for anything else."""
        try:
            text = self.body.decode("ascii").strip()
        except UnicodeDecodeError as error:
            raise ProviderUnavailable("{host} sent a damaged answer.", host=self.host, detail="not ASCII") from error
        if not text or not text.isprintable():
            raise ProviderUnavailable("{host} sent a damaged answer.", host=self.host, detail="not one line")
        return text


class Patience(Struct, frozen=True, kw_only=True):
    """How long a host is waited for, in seconds: to be reached, in one silence, in all; after which pauses a GET is
    tried again; and of how many bytes an answer may be."""

    connect: float
    silence: float
    whole: float
    pauses: tuple[float, ...]
    answer_bytes: int


class Exchange(Struct, frozen=True, kw_only=True):
    """One request and its answer, for the trace of a connection; `answer` is None where none came."""

    host: str
    request: Outgoing
    answer: ProviderAnswer | None


WATCHED_BY: ContextVar[Callable[[Exchange], None] | None] = ContextVar("WATCHED_BY", default=None)
"""The function that gets every exchange of this thread's work: `bankdata connect --trace`."""


class Provider:
    """One host, asked only over https (http on this machine). Safe to use from any thread; keeps no cookies."""

    def __init__(self, address: str, *, patience: Patience | None = None, ca_file: Path | None = None) -> None:
        """Prepare to ask this address from the settings, which may have a path and must be one that `is_reachable`
        allows; with the patience for banks unless another is given. `ca_file` has the certificate authorities that
        count in place of the system's. Raises OSError where it cannot be read."""
        assert is_reachable(address), "checked with the settings"
        self._given = patience
        self._ca_file = ca_file
        self.address = address.rstrip("/")
        self.host = urlsplit(address).netloc

    def get(
        self,
        path: str,
        *,
        parameters: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
    ) -> ProviderAnswer:
        """The answer to a GET, tried twice more after a pause where the host cannot be reached or a proxy fails (502 to
        504) without saying when to try again. Raises ProviderUnavailable, and RateLimited for 429."""
        request = Outgoing(method="GET", path=path, parameters=parameters, headers=headers, auth=auth)
        for pause in self._patience.pauses:
            try:
                return self._ask(request)
            except _Passing as error:
                if error.retry_after is not None:
                    raise
                time.sleep(pause)
        return self._ask(request)

    def post(
        self,
        path: str,
        *,
        document: Json | None = None,
        form: Mapping[str, str] | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
    ) -> ProviderAnswer:
        """The answer to a POST of a JSON document, a form or bytes, sent only once. Raises as `get`."""
        sent: dict[str, Any] = {"data": form or {}}
        if document is not None:
            sent = {"json": document}
        elif content is not None:
            sent = {"content": content}
        return self._ask(Outgoing(method="POST", path=path, sent=sent, headers=headers, auth=auth))

    def delete(self, path: str, *, headers: Mapping[str, str] | None = None) -> ProviderAnswer:
        """The answer to a DELETE, sent only once. Raises as `get`."""
        return self._ask(Outgoing(method="DELETE", path=path, headers=headers))

    def close(self) -> None:
        """Close the connections to the host. For a provider that is not asked any more: a later request would fail."""
        if "_client" in vars(self):
            _run_on_loop(self._client.aclose())

    @property
    def _patience(self) -> Patience:
        return self._given or Patience(
            connect=CONNECT_SECONDS_MAX,
            silence=SILENCE_SECONDS_MAX,
            whole=REQUEST_SECONDS_MAX,
            pauses=PAUSES,
            answer_bytes=ANSWER_BYTES_MAX,
        )

    @cached_property
    def _client(self) -> "httpx.AsyncClient":
        import httpx  # takes a tenth of a second, which only servers with a live source spend

        return httpx.AsyncClient(
            timeout=httpx.Timeout(self._patience.silence, connect=self._patience.connect),
            headers={"User-Agent": "bankdata", "Accept-Encoding": "identity"},  # unpacked it could be of any size
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # one user's must never reach another one
            trust_env=self.address.startswith("https:"),  # the operator's proxy, but not for this machine
            verify=ssl.create_default_context(cafile=self._ca_file) if self.address.startswith("https:") else False,
            follow_redirects=False,
        )

    def _ask(self, request: Outgoing) -> ProviderAnswer:
        assert request.path.startswith("/"), "a path below the provider's address"
        answer = self._exchange(request)
        if 300 <= answer.status < 400:
            raise ProviderUnavailable(
                "{host} sends on to another address, and that is not followed.",
                host=self.host,
                detail=f"status {answer.status}",
            )
        if answer.status == 429:
            raise RateLimited(detail="status 429", retry_after=answer.retry_after)
        if answer.status >= 500:
            kind = _Passing if answer.status in PASSING else ProviderUnavailable
            raise kind(
                Message("{host} has a fault (status {status}).", host=self.host, status=answer.status),
                detail=f"status {answer.status}",
                retry_after=answer.retry_after,
            )
        return answer

    def _exchange(self, request: Outgoing) -> ProviderAnswer:
        import httpx

        watched_by = WATCHED_BY.get()
        answer: ProviderAnswer | None = None
        try:
            answer = _run_on_loop(self._answer(request))
            return answer
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise _Passing("{host} cannot be reached.", host=self.host, detail=type(error).__name__) from None
        except (httpx.TimeoutException, TimeoutError) as error:
            raise ProviderUnavailable(
                "{host} did not answer in time.", host=self.host, detail=type(error).__name__
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:  # their texts may contain addresses
            raise ProviderUnavailable("{host} broke off.", host=self.host, detail=type(error).__name__) from None
        finally:
            if watched_by is not None:
                watched_by(Exchange(host=self.host, request=request, answer=answer))

    async def _answer(self, request: Outgoing) -> ProviderAnswer:
        """The answer to the request. Raises TimeoutError when the whole time is over, because the timeouts of httpx are
        those of single reads, which a byte every few seconds would never reach."""
        async with (
            asyncio.timeout(self._patience.whole),
            self._client.stream(
                request.method,
                self.address + request.path,
                params=dict(request.parameters or {}) or None,
                headers=dict(request.headers or {}),
                auth=request.auth,
                **request.sent,
            ) as response,
        ):
            return ProviderAnswer(
                host=self.host,
                status=response.status_code,
                content_type=response.headers.get("Content-Type", "").partition(";")[0].strip().lower(),
                retry_after=_retry_after(response.headers),
                body=await self._body(response.headers, response.aiter_raw()),
            )

    async def _body(self, headers: Mapping[str, str], pieces: AsyncIterable[bytes]) -> bytes:
        """The body as it comes, bounded, whatever length is announced. Raises ProviderUnavailable
        for a longer or a packed one."""
        if headers.get("Content-Encoding", "identity").lower() != "identity":
            raise ProviderUnavailable(
                "{host} sent a damaged answer.", host=self.host, detail="packed without being asked to"
            )
        body = bytearray()
        async for piece in pieces:
            body += piece
            if len(body) > self._patience.answer_bytes:
                raise ProviderUnavailable(
                    "{host} sent more than {limit} bytes.", host=self.host, limit=self._patience.answer_bytes
                )
        return bytes(body)


def _run_on_loop(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`. All requests run on one thread's event loop, where any of them can be given up at any
    point."""
    with _STARTING:
        loop = _loop()
    return asyncio.run_coroutine_threadsafe(work, loop).result()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="asking banks", daemon=True).start()
    return loop


class _Passing(ProviderUnavailable):
    """The bank could not be reached."""


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _check_depth(host: str, document: Any) -> None:
    level = [document]  # containers only; numbers and texts add no depth
    for _ in range(DEPTH_MAX):
        level = [child for each in level for child in _children(each) if isinstance(child, dict | list)]
        if not level:
            return
    raise ProviderUnavailable("{host} sent a damaged answer.", host=host, detail=f"nested more than {DEPTH_MAX} deep")


def _children(each: Any) -> Iterable[Any]:
    if isinstance(each, dict):
        return each.values()
    return each if isinstance(each, list) else ()


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds to wait according to Retry-After (RFC 9110 section 10.2.3), at most a day: seconds, or a date, which
    is compared with the sender's own clock. None where neither is readable."""
    text = headers.get("Retry-After", "").strip()
    if text.isdecimal() and text.isascii():
        return min(float(text[:9]), RETRY_AFTER_MAX)
    until, since = _moment(text), _moment(headers.get("Date", ""))
    if until is None or since is None:
        return None
    return min(max(0.0, (until - since).total_seconds()), RETRY_AFTER_MAX)


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # a year of twenty digits
        return None
    return moment if moment.tzinfo is not None else None
