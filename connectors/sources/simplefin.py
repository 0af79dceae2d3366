"""SimpleFIN: banks of the United States and Canada, through a bridge that their customers pay and trust.

The person makes a token at the bridge and enters it here; it is exchanged once for an access URL, which opens the
accounts until it is revoked there. One request returns everything, always for the last 90 days: late bookings and
corrections cost nothing then, and the bridge counts requests (24 a day, after which it warns and then revokes).
Protocol: https://www.simplefin.org/protocol.html, versions 1 and 2.
"""

import base64
import binascii
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from analytics.messages import Message
from analytics.records import AccountRecord, Batch, Record, StatementRecord, TransactionRecord
from connectors.connecting import Done, FormField, LiveSource, Question, Reply, Step
from connectors.connector import (
    Connection,
    ConsentRevoked,
    Json,
    LeftOut,
    ProviderUnavailable,
    RateLimited,
    SourceError,
    UserActionRequired,
)
from connectors.outgoing_http import Provider
from connectors.text import YEARS, clean, clean_key, clean_purpose, is_currency, parse_amount

SPAN = timedelta(days=90)  # "limited to 90 days": the bridge cuts off more, and only says so in `errlist`
TOKEN_CHARACTERS_MAX = 2_000
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the store keeps UTC without zone

TOKEN = FormField(name="token", label=Message("SimpleFIN token"), is_secret=True)
NO_TOKEN = Message("That is no token of this SimpleFIN server. Copy all of it.")
USED = (
    "This token has been used before or does not exist. If it was not you, somebody else may have access: disable it at"
    " SimpleFIN, then make another one."
)


class SimpleFin(LiveSource):
    """The source SimpleFIN. The secret of a connection is {"access_url": with user and password}."""

    name = "simplefin"
    title = "SimpleFIN"
    about = Message("Banks of the United States and Canada, with a SimpleFIN subscription of your own.")
    is_set_up = True
    is_local = False
    unattended_syncs_max = 24

    def __init__(self, address: str) -> None:
        """Prepare requests to the one server at `address`; only its tokens are accepted."""
        parts = urlsplit(address)
        self._provider = Provider(f"{parts.scheme}://{parts.netloc}")
        place = f"SimpleFIN ({parts.netloc}/simplefin/create)"
        self._question = Question(
            text=Message("Make a token at {place} and paste it here.", place=place),
            fields=(TOKEN,),
        )

    def next_step(self, connection: Connection, reply: Reply, *, now: datetime) -> Step:  # noqa: ARG002 - the protocol names them
        """The next step: the question for the token, then its exchange, which is possible once."""
        token = str(reply.given.get("token", "")).strip()
        if not token:
            return self._question
        path = self._path_of(_decode_token(token))
        if path is None:
            return replace(self._question, problem=NO_TOKEN)
        claimed = self._provider.post(path)
        if claimed.status == 403:
            raise UserActionRequired(USED, detail="the token was claimed before")
        if claimed.status != 200:
            raise ProviderUnavailable(detail=f"status {claimed.status} for a claim")
        access_url = claimed.line()
        if self._path_of(access_url) is None or not urlsplit(access_url).password:
            raise ProviderUnavailable("SimpleFIN gave an address that cannot be used.", detail="not its own host")
        return Done(bank_name=self.title, secrets={"access_url": access_url})

    def is_same_login(self, known: Connection, done: Done) -> bool:  # noqa: ARG002 - the protocol names them
        """Always True: nothing says whose a token is, and one subscription reaches all banks of a person. A second one
        needs a name of its own."""
        return True

    def disconnect(self, connection: Connection, *, now: datetime) -> None:  # noqa: ARG002 - as above
        """Always raise SourceError, because only the person can disable the access, at SimpleFIN."""
        raise SourceError("SimpleFIN has no request for that.")

    def start_refresh(self, connection: Connection, *, now: datetime) -> Json:  # noqa: ARG002 - as above
        """Begin nothing, because the bridge asks the banks once a day by itself; the handle has the period, which ends
        at the next midnight."""
        until = datetime(now.year, now.month, now.day) + timedelta(days=1)  # noqa: DTZ001 - as above
        return {"from": _seconds(until - SPAN), "until": _seconds(until)}

    def fetch(
        self,
        connection: Connection,
        handle: Json,
        *,
        cursor: Json | None,  # noqa: ARG002 - every request returns everything
        today: date,
    ) -> Iterator[Batch | LeftOut]:
        """One request: a batch for each account in its answer, then LeftOut for each problem that the bridge reports.
        An account that is kept in points or miles is only yielded as LeftOut. Where no account comes, the reported
        problems are raised (`_check`)."""
        answer = self._ask(connection, handle)
        banks = {str(each.get("conn_id")): each for each in _objects(answer.get("connections"))}
        accounts = _objects(answer.get("accounts"))
        problems = _problems(answer)
        if not accounts:
            _check(problems)
        for account in accounts:
            bank = banks.get(str(account.get("conn_id"))) or account.get("org") or {}
            key = _key_of(account, bank)
            name = clean(_text(account, "name")) or key
            if not is_currency(account.get("currency")):
                yield LeftOut(name=name, reason="It is kept in points or miles, which are no currency.")
                continue
            yield Batch(
                id=f"simplefin:{connection.id}:{key}:{handle['until']}",
                name=name,
                records=_records(account, bank, key, told_from=_day(handle, "from"), today=today),
            )
        for each in problems:
            bank = banks.get(each.conn_id) or {}
            yield LeftOut(
                name=_bank_name(bank) or self.title, reason=clean(each.words) or "SimpleFIN could not ask this bank."
            )

    def _ask(self, connection: Connection, handle: Json) -> dict[str, Any]:
        access_url = str(connection.secrets.get("access_url", ""))
        path = self._path_of(access_url)
        parts = urlsplit(access_url)
        if path is None or not parts.password:
            raise UserActionRequired(detail="no access URL of this server")
        answer = self._provider.get(
            f"{path.rstrip('/')}/accounts",
            parameters={
                "version": "2",
                "pending": "1",
                "start-date": str(handle["from"]),
                "end-date": str(handle["until"]),
            },
            auth=(unquote(parts.username or ""), unquote(parts.password)),
        )
        match answer.status:
            case 200:
                return answer.members()
            case 401 | 403:
                raise ConsentRevoked(detail=f"status {answer.status}")
            case 402:
                raise Unpaid(detail="status 402")
        raise ProviderUnavailable(detail=f"status {answer.status}")

    def _path_of(self, address: str) -> str | None:
        """The path of an address on this server; None for an address on another server, or with a query, a fragment or
        "..", or that cannot be read."""
        try:
            parts = urlsplit(address)
            here = urlsplit(self._provider.address)
            is_ours = (parts.scheme, parts.hostname, parts.port) == (here.scheme, here.hostname, here.port)
        except ValueError:
            return None
        is_plain = not parts.query and not parts.fragment and parts.path.startswith("/") and parts.path.isprintable()
        return parts.path if is_ours and is_plain and ".." not in parts.path else None


class Unpaid(ProviderUnavailable):
    """SimpleFIN wants to be paid: see to the subscription there."""


def _decode_token(token: str) -> str:
    """The address that a token encodes; empty for an invalid token."""
    if len(token) > TOKEN_CHARACTERS_MAX:
        return ""
    try:
        return base64.b64decode("".join(token.split()), validate=True).decode("ascii").strip()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""


class Problem(Struct, frozen=True, kw_only=True):
    """A problem that the bridge reports: a code of version 2, a text for the user, and the bank concerned."""

    code: str
    words: str
    conn_id: str


def _problems(answer: Mapping[str, Any]) -> list[Problem]:
    """The problems in an answer: `errlist` of version 2, else `errors` of version 1."""
    structured = [
        Problem(
            code=str(each.get("code", "")),
            words=_text(each, "msg") or _text(each, "message") or "",
            conn_id=str(each.get("conn_id", "")),
        )
        for each in _objects(answer.get("errlist"))
    ]
    words = answer.get("errors")
    if structured or not isinstance(words, list):
        return structured
    return [Problem(code="gen.other", words=str(each), conn_id="") for each in words]


def _check(problems: Iterable[Problem]) -> None:
    """Raise why nothing came, by the codes of the reported problems: RateLimited, UserActionRequired, else
    ProviderUnavailable. Without any problem, do nothing."""
    codes = sorted({each.code for each in problems})
    if any("quota" in code or "limit" in code for code in codes):
        raise RateLimited(detail=" ".join(codes))
    if any(code.endswith(".auth") for code in codes):
        raise UserActionRequired("A bank wants you to sign in again, at SimpleFIN.", detail=" ".join(codes))
    if codes:
        raise ProviderUnavailable("SimpleFIN has nothing from your banks at present.", detail=" ".join(codes))


def _key_of(account: Mapping[str, Any], bank: Mapping[str, Any]) -> str:
    """The key of an account: its id with its organization, because ids are unique only within one."""
    at = bank.get("conn_id") or bank.get("domain") or bank.get("id") or bank.get("name") or ""
    return f"{at}/{_required_text(account, 'id')}"


def _bank_name(bank: Mapping[str, Any]) -> str | None:
    return clean(_text(bank, "org_name") or _text(bank, "name") or _text(bank, "domain"))


def _records(
    account: Mapping[str, Any], bank: Mapping[str, Any], key: str, *, told_from: date | None, today: date
) -> Iterator[Record]:
    currency = str(account["currency"])
    yield AccountRecord(
        stable_key=key,
        currency=currency,
        name=clean(_text(account, "name")),
        bank_name=_bank_name(bank),
    )
    bookings = [_booking(each, currency, today) for each in _objects(account.get("transactions"))]
    counts = Counter(each.provider_id for each in bookings if each.status == "booked")
    for each in bookings:  # an id that several bookings share is not used
        yield replace(each, provider_id=None) if counts[each.provider_id] > 1 else each
    yield StatementRecord(
        closing=_amount(account, "balance"),
        closing_date=_day(account, "balance-date"),
        told_from=told_from,
        told_until=today,
        is_pending_complete=True,
    )


def _booking(booking: Mapping[str, Any], currency: str, today: date) -> TransactionRecord:
    posted = _day(booking, "posted")
    is_pending = booking.get("pending") is True or posted is None
    return TransactionRecord(
        amount=_amount(booking, "amount"),
        currency=currency,
        booking_date=posted or _day(booking, "transacted_at") or today,
        status="pending" if is_pending else "booked",
        provider_id=clean_key(_required_text(booking, "id")),
        counterpart_name=clean(_text(booking, "payee")),
        purpose=clean_purpose(_text(booking, "description"), _text(booking, "memo")),
    )


def _objects(value: object) -> list[dict[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ProviderUnavailable("SimpleFIN sent a damaged answer.", detail="not a list of objects")
    return value


def _required_text(members: Mapping[str, Any], name: str) -> str:
    value = members.get(name)
    if not isinstance(value, str) or not value:
        raise ProviderUnavailable("SimpleFIN sent a damaged answer.", detail=f"no {name}")
    return value


def _text(members: Mapping[str, Any], name: str) -> str | None:
    value = members.get(name)
    return value if isinstance(value, str) else None


def _amount(members: Mapping[str, Any], name: str) -> Any:
    try:
        return parse_amount(str(members[name]))
    except (KeyError, ValueError) as error:
        raise ProviderUnavailable("SimpleFIN sent a damaged answer.", detail=f"{name} is no amount") from error


def _day(members: Mapping[str, Any], name: str) -> date | None:
    """The day in UTC of a time in seconds since 1970; None for no time, and for 0, which pending bookings have."""
    seconds = members.get(name)
    if seconds is None or seconds == 0:
        return None
    try:
        day = datetime.fromtimestamp(int(seconds), UTC).date()
        if day.year not in YEARS:
            raise ValueError("a year no booking has")
    except (TypeError, ValueError, OverflowError, OSError) as error:
        raise ProviderUnavailable("SimpleFIN sent a damaged answer.", detail=f"{name} is no moment") from error
    return day


def _seconds(moment: datetime) -> int:
    return int((moment - EPOCH).total_seconds())
