"""Answers the operations of SimpleFIN: admits and limits apps, and puts failures into the protocol's shapes."""

import base64
import binascii
import logging
import math
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from importlib import resources
from itertools import chain

from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send

from auth.errors import InvalidGrant, InvalidToken
from auth.policy import PATHS
from auth.tokens.simplefin import WrongPassword
from handlers.operations.selection import covered_accounts
from handlers.simplefin.account_set import DAY, AccountSet, asked_days
from handlers.web import call
from handlers.web.app import Api
from handlers.web.errors import Refusal, TooManyRequests, error_answer
from handlers.web.framework import AbstractOperation
from handlers.web.request import Answer, Request
from handlers.web.sockets.peers import note_sign_in
from handlers.web.steps.rate_limit import Limiter, Rate
from handlers.work.cache.user_data import Need
from handlers.work.services import Services
from storage.oauth.moments import aware

PATH = PATHS["simplefin"]
VERSIONS = ["1.0", "2.0"]
DAYS_UNASKED = 90  # of bookings, for an app that gives no start date
PART_BYTES = 65_536  # of an answer; shorter ones are sent whole
OF_GRANT = Rate(requests=3_000, seconds=600)  # per grant; an app pages from 1970 on in 470 requests for each account
OF_REFUSED = Rate(requests=60, seconds=60)  # per network address
OF_CLAIMS = Rate(requests=30, seconds=60)

DESCRIPTION = (resources.files("handlers.simplefin") / "simplefin-api.json").read_bytes()

_BASIC = re.compile(rb"[Bb][Aa][Ss][Ii][Cc] +([A-Za-z0-9+/]+=*) *")

logger = logging.getLogger("bankdata.simplefin")


class NotAdmitted(Refusal):
    """The app's password is missing, wrong, or of an access that has ended: the three look the same."""

    status = 403
    text = "This access is not open (any more). Its owner can make a new setup token"


class PaymentRequired(Refusal):
    """The person whose data the access opens has no subscription."""

    status = 402


def simplefin_api(services: Services, limiter: Limiter) -> Api:
    """The SimpleFIN interface: its description, with its operations, guard and form of errors."""
    endpoint = SimpleFinEndpoint(services, limiter)
    return Api(
        description=DESCRIPTION,
        operations={
            "getSimpleFinInfo": endpoint.info,
            "createSimpleFinToken": endpoint.create,
            "claimSimpleFin": endpoint.claim,
            "getSimpleFinAccounts": endpoint.accounts,
        },
        failure_answer=failure_answer,
        guard=endpoint.guard,
    )


class SimpleFinEndpoint:
    """The operations of SimpleFIN, and the guard before the one that needs a password."""

    def __init__(self, services: Services, limiter: Limiter) -> None:
        self._services = services
        self._access = services.authorization.simplefin
        self._limiter = limiter

    def guard(self, operation: AbstractOperation, next_app: ASGIApp) -> ASGIApp:
        """The step that checks password, limit and subscription, in this order, before an operation that needs a
        password; others get none. It puts the caller into the call, or raises NotAdmitted, TooManyRequests or
        PaymentRequired."""
        if not operation.security:
            return next_app

        async def admit(scope: Scope, receive: Receive, send: Send) -> None:
            asked = call.current(scope)
            user_part, password = _credentials(scope)
            try:
                caller = await run_in_threadpool(self._access.principal, user_part, password)
            except InvalidToken as error:
                logger.info("refused: %s", error)
                await self._limiter.spend("simplefin refused", asked.client_address, rate=OF_REFUSED)
                if isinstance(error, WrongPassword):
                    await run_in_threadpool(self._slow_down, user_part, asked.client_address)
                raise NotAdmitted() from None
            note_sign_in(scope)
            asked.caller = caller
            await self._limiter.spend("simplefin", caller.grant_id or "", rate=OF_GRANT)
            if not caller.has_subscription:
                at = self._services.settings.billing_url
                raise PaymentRequired(f"Active subscription required. Subscribe at {at}")
            await next_app(scope, receive, send)

        return admit

    def info(self, _request: Request) -> Answer:
        """The versions of the protocol that are served."""
        return Answer(body={"versions": VERSIONS})

    def create(self, _request: Request) -> Answer:
        """Redirect to the form that makes a setup token."""
        address = f"{self._services.settings.auth_url}/account/simplefin"
        return Answer(body=b"", status=303, headers={"location": address, "content-type": "text/plain; charset=utf-8"})

    async def claim(self, request: Request, *, code: str) -> Answer:
        """Exchange a setup token, once, for the address with which the app reads, sent as plain text. Raises
        InvalidGrant for a token that is unknown, over or used."""
        await self._limiter.spend("simplefin claims", request.client_address, rate=OF_CLAIMS)
        agent = request.headers.get("user-agent", "")
        address = await run_in_threadpool(self._access.claim, code, agent=agent, address=request.client_address)
        return _plain(address)

    def accounts(
        self,
        request: Request,
        *,
        start_date: Decimal | None,
        end_date: Decimal | None,
        pending: str | None,
        account: list[str] | None,
        balances_only: str | None,
        version: str | None,  # noqa: ARG002 - an answer fits both versions
    ) -> Answer:
        """The accounts that the app may see, or those of them that it names, with their transactions from `start_date`
        on (90 days ago if none is given) and before `end_date`, both in seconds since 1970, pending ones for `pending`
        "1". Without transactions for `balances_only` "1", and for a grant of figures only."""
        services, caller = self._services, request.principal
        now = services.clock.now()
        seconds = Fraction(aware(now).timestamp())
        with_rows = balances_only != "1" and not caller.figures_only
        days = asked_days(
            Fraction(start_date) if start_date is not None else seconds - DAYS_UNASKED * DAY,
            Fraction(end_date) if end_date is not None else None,
            today=services.clock.today(),
            now=seconds,
        )
        needs = Need.STATUSES | Need.LIST | Need.PENDING if with_rows else Need.STATUSES
        key = PATH, days if with_rows else None, pending == "1", tuple(account or ()), account is None, caller.coverage
        with services.reader.open(caller.user_id, needs) as reading:
            if (kept := reading.answer(key)) is not None:
                return kept
            seen = covered_accounts(reading.accounts, caller)
            made = AccountSet(reading=reading, address=services.settings.public_url + PATH, seen=seen, now=now)
            pieces = made.pieces(
                [each for each in seen if account is None or each.id in account],
                days=days if with_rows else None,
                with_pending=pending == "1",
            )
            parts = _gathered(pieces)
            first, second = next(parts), next(parts, None)
            headers = {"content-type": "application/json"}
            if second is None:
                answer = Answer(body=first, headers=headers)
                reading.keep_answer(key, answer)
                return answer
        return Answer(body=_InPieces(chain([first, second], parts), services.exports.shaping), headers=headers)

    def _slow_down(self, user_part: str, address: str) -> None:
        wait = self._access.wait_after_guess(user_part, address=address)
        if wait is not None:
            raise TooManyRequests(retry_after=math.ceil(wait.total_seconds()))


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of at least PART_BYTES, but for the last one."""
    waiting: list[bytes] = []
    for piece in pieces:
        waiting.append(piece)
        if sum(map(len, waiting)) >= PART_BYTES:
            yield b"".join(waiting)
            waiting = []
    if waiting:
        yield b"".join(waiting)


class _InPieces:
    """The body of a long answer, each piece of which is made in a thread when those before it have been taken."""

    def __init__(self, pieces: Iterator[bytes], limiter: CapacityLimiter) -> None:
        self._pieces, self._limiter = pieces, limiter

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await to_thread.run_sync(next, self._pieces, b"", limiter=self._limiter):
            yield piece

    async def aclose(self) -> None:
        """End, although nobody may have read everything: nothing is kept open."""


def failure_answer(error: BaseException) -> Answer | None:
    """The failure in a form that apps of both versions of SimpleFIN read; for a setup token (InvalidGrant), a plain
    text that begins with the one word that all apps know. None for any other error that is no Refusal
    (`call.FailureAnswer`)."""
    if isinstance(error, InvalidGrant):
        return _plain("Forbidden: this setup token is unknown, over or used", status=403)
    if not isinstance(error, Refusal):
        return None
    said = error_answer(error)
    code = "gen.auth" if isinstance(error, NotAdmitted) else "gen." if said.status == 402 else "gen.api"
    body = {"errors": [str(error)], "errlist": [{"code": code, "msg": str(error)}], "connections": [], "accounts": []}
    return Answer(body=body, status=said.status, headers=said.headers)


def _plain(text: str, *, status: int = 200) -> Answer:
    return Answer(body=text.encode(), status=status, headers={"content-type": "text/plain; charset=utf-8"})


def _credentials(scope: Scope) -> tuple[str, str]:
    """User part and password of a request; both empty where it has no valid Basic credentials."""
    sent = [value for name, value in scope["headers"] if name == b"authorization"]
    match = _BASIC.fullmatch(sent[0]) if len(sent) == 1 else None
    try:
        text = base64.b64decode(match[1], validate=True).decode() if match else ""
    except (binascii.Error, UnicodeDecodeError):
        text = ""
    user_part, _, password = text.partition(":")
    return user_part, password
