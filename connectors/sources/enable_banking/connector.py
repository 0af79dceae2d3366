"""The connector for Enable Banking: European banks, through an application of the operator at a licensed provider.

The person chooses the bank, signs in there, and comes back with a code that is exchanged once for a session, which
lasts until the day named in the consent. An account's `uid` ends with its session, its `identification_hash` does not.
Description: https://enablebanking.com/docs/api/reference/
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from analytics.messages import Message
from analytics.records import Batch
from connectors.connecting import Done, FormField, LiveSource, Question, Redirect, Reply, Step
from connectors.connector import (
    CUT_OFF,
    Connection,
    ConsentExpired,
    ConsentRevoked,
    Json,
    LeftOut,
    ProviderUnavailable,
    RateLimited,
    Ready,
    UserActionRequired,
    Waiting,
)
from connectors.reachable import is_reachable
from connectors.sources.enable_banking.answers import damage, members, moment, objects, texts
from connectors.sources.enable_banking.application import Application, NotAccessible, RequestRefused, WrongPeriod
from connectors.sources.enable_banking.records import account_facts, booking_date, currency_of, name_of, records
from connectors.text import is_currency

FIRST_DAYS = (365, 90, 28)  # tried in this order until the bank accepts the period
OLDEST_YEARS = 10  # before these days, for a bank that gives so much to a person who has just signed in
LATER_DAYS = 35  # or from the last sync, if that is longer ago
OVERLAP_DAYS = 10
PAGES_MAX = 200
CONSENT_SECONDS_MAX = 180 * 86_400  # PSD2: "at least every 180 days", Delegated Regulation (EU) 2022/2360
COUNTRY_CODE = re.compile("[A-Z]{2}")
SESSION_ID = re.compile(r"[\w-]{1,100}")

BUSINESS = "business"

# Where banks answer through Enable Banking: the European Economic Area and the United Kingdom, as they call themselves
COUNTRIES = (
    ("BG", "Bălgarija"), ("BE", "België / Belgique"), ("CZ", "Česko"), ("DK", "Danmark"), ("DE", "Deutschland"),
    ("EE", "Eesti"), ("GR", "Elláda"), ("ES", "España"), ("FR", "France"), ("HR", "Hrvatska"), ("IE", "Ireland"),
    ("IS", "Ísland"), ("IT", "Italia"), ("CY", "Kýpros"), ("LV", "Latvija"), ("LI", "Liechtenstein"),
    ("LT", "Lietuva"), ("LU", "Luxembourg"), ("HU", "Magyarország"), ("MT", "Malta"), ("NL", "Nederland"),
    ("NO", "Norge"), ("AT", "Österreich"), ("PL", "Polska"), ("PT", "Portugal"), ("RO", "România"),
    ("SI", "Slovenija"), ("SK", "Slovensko"), ("FI", "Suomi"), ("SE", "Sverige"), ("GB", "United Kingdom"),
)  # fmt: skip
COUNTRY = Question(
    text=Message("In which country is your bank?"),
    fields=(
        FormField(name="country", label=Message("Country"), choices=COUNTRIES, default="DE"),
        FormField(
            name="psu_type",
            label=Message("Whose accounts are they?"),
            choices=(("personal", "personal / privat"), (BUSINESS, "business / geschäftlich")),
            default="personal",
        ),
    ),
)
NO_COUNTRY = Message("Two letters, such as DE or AT.")
WHICH_BANK = Message("Which bank is it? You sign in there.")
SEVERAL_BANKS = Message("Several banks begin so. Choose yours.")
NO_SUCH_BANK = Message("This bank is not in the list.")

Ask = Callable[[dict[str, str]], Json]


class EndlessPages(ProviderUnavailable):
    """The bank's list of transactions has no end."""


class EnableBanking(LiveSource):
    """The source Enable Banking. The secret of a connection is {"session": id}, its settings are bank, country and the
    bank's facts about the accounts."""

    name = "enable-banking"
    title = "Enable Banking"
    about = Message("Banks in Europe: you sign in at your bank, and the access lasts up to 180 days.")
    is_local = False
    unattended_syncs_max = 4  # Delegated Regulation (EU) 2018/389, article 36 (5) (b)

    def __init__(self, address: str, *, application: str, key_file: Path | None) -> None:
        """Prepare requests; `application` and the file with its private key are the operator's."""
        self._application = Application(address, id=application, key_file=key_file)

    @property
    def is_set_up(self) -> bool:
        """Whether the operator has an application at Enable Banking."""
        return self._application.is_set_up

    def next_step(self, connection: Connection, reply: Reply, *, now: datetime) -> Step:
        """The next step: the questions for country and bank, the bank's own page, and the exchange of the code that the
        browser brings back."""
        if reply.returned:
            return self._exchange_code(connection, reply, now)
        country = str(reply.given.get("country") or connection.settings.get("country", "")).strip().upper()
        if not country:
            return COUNTRY
        if not COUNTRY_CODE.fullmatch(country):
            return replace(COUNTRY, problem=NO_COUNTRY)
        wanted = str(reply.given.get("bank") or connection.settings.get("bank", "")).strip()
        is_business = (reply.given.get("psu_type") or connection.settings.get("psu_type")) == BUSINESS
        banks = self._banks(country, now, is_business=is_business)
        found = _banks_called(wanted, banks)
        if len(found) != 1:
            choices = tuple((each["name"], each["name"]) for each in found or banks)
            field = FormField(name="bank", label=Message("Bank"), choices=choices)
            problem = None if not wanted else SEVERAL_BANKS if found else NO_SUCH_BANK
            return Question(text=WHICH_BANK, fields=(field,), problem=problem)
        return self._redirect_to(found[0], country, reply, now, is_business=is_business)

    def is_same_login(self, known: Connection, done: Done) -> bool | None:
        """Whether both connections show an account in common, by hashes that outlive a session; None where one shows
        none."""
        before, now = members(known.settings.get("accounts")).keys(), done.settings["accounts"].keys()
        return not before.isdisjoint(now) if before and now else None

    def disconnect(self, connection: Connection, *, now: datetime) -> None:
        """End the session; one that has ended already is no error."""
        if session := connection.secrets.get("session"):
            with suppress(ConsentExpired, ConsentRevoked):
                self._application.delete(f"/sessions/{session}", now=now)

    def start_refresh(self, connection: Connection, *, now: datetime) -> Json:  # noqa: ARG002 - the protocol names them
        """Begin nothing, because the bank is asked while its data is fetched; the handle has the time."""
        return {"at": now.isoformat()}

    def poll_refresh(self, connection: Connection, handle: Json, *, now: datetime) -> Waiting | Ready:
        """Ask for the session, and return Ready with the session's accounts in the handle and the end of the consent.
        Raises ConsentExpired, ConsentRevoked and UserActionRequired."""
        if not (id_ := connection.secrets.get("session")):
            raise UserActionRequired(detail="no session")
        session = self._application.get(f"/sessions/{id_}", now=now, person=connection.attended)
        match session.get("status"):
            case "AUTHORIZED":
                pass
            case "EXPIRED":
                raise ConsentExpired(detail="status of the session")
            case "REVOKED" | "CLOSED" | "CANCELLED":
                raise ConsentRevoked(detail="status of the session")
            case _:
                raise UserActionRequired(detail="status of the session")
        shown = session.get("accounts_data") or [{"uid": uid} for uid in texts(session.get("accounts"))]
        accounts = [
            {"uid": each["uid"], "key": _key_of(each)} for each in objects(shown) if isinstance(each.get("uid"), str)
        ]
        until = moment(members(session.get("access")).get("valid_until"))
        return Ready(handle={**handle, "at": now.isoformat(), "accounts": accounts}, consent_expires_at=until)

    def fetch(
        self, connection: Connection, handle: Json, *, cursor: Json | None, today: date
    ) -> Iterator[Batch | LeftOut]:
        """A batch per account with all its pages. An account that the bank refuses, whose pages do not end, or that has
        no known currency is only yielded as LeftOut; one whose list broke off comes as a batch, then as LeftOut, and
        its cursor stays."""
        at, until = handle["at"], dict(members((cursor or {}).get("until")))
        ask = partial(self._application.get, now=datetime.fromisoformat(at), person=connection.attended)
        for account in handle["accounts"]:
            key, path = account["key"], f"/accounts/{account['uid']}"
            known = members(members(connection.settings.get("accounts")).get(key))
            try:
                known = known or account_facts(ask(f"{path}/details"))
                balances = objects(ask(f"{path}/balances").get("balances"))
                ask_bookings = partial(ask, f"{path}/transactions")
                rows, told_from = _rows(ask_bookings, _days(until.get(key), today), today)
                if key not in until and told_from is not None:
                    rows += _older_rows(ask_bookings, told_from)
            except (NotAccessible, EndlessPages) as error:
                yield LeftOut(name=name_of(known) or key[:8], reason=str(error))
                continue
            name = name_of(known) or known.get("iban") or key[:8]
            currency = currency_of(known, balances, rows)
            if not is_currency(currency):
                yield LeftOut(name=name, reason="It has no currency that is known here.")
                continue
            if told_from is not None:
                until[key] = today.isoformat()
            yield Batch(
                id=f"enable-banking:{connection.id}:{key}:{at}",
                name=name,
                records=records(
                    known,
                    balances,
                    rows,
                    key=key,
                    currency=currency,
                    bank_name=connection.bank_name,
                    told_from=told_from,
                    today=today,
                ),
                cursor={"until": dict(until)},
            )
            if told_from is None:
                yield LeftOut(name=name, reason=CUT_OFF)

    def _banks(self, country: str, now: datetime, *, is_business: bool) -> list[dict[str, Any]]:
        answer = self._application.get("/aspsps", {"country": country, "psu_type": _psu_type(is_business)}, now=now)
        banks = [each for each in objects(answer.get("aspsps")) if isinstance(each.get("name"), str)]
        return sorted(banks, key=lambda each: str(each["name"]).casefold())

    def _redirect_to(self, bank: Json, country: str, reply: Reply, now: datetime, *, is_business: bool) -> Redirect:
        longest = bank.get("maximum_consent_validity")
        lasts = min(longest, CONSENT_SECONDS_MAX) if isinstance(longest, int) and longest > 0 else CONSENT_SECONDS_MAX
        until = (now + timedelta(seconds=lasts)).replace(tzinfo=UTC, microsecond=0)
        answer = self._application.post(
            "/auth",
            {
                "access": {"valid_until": until.isoformat()},
                "aspsp": {"name": bank["name"], "country": country},
                "state": reply.state,
                "redirect_url": reply.return_url,
                "psu_type": _psu_type(is_business),
            },
            now=now,
        )
        url = str(answer.get("url", ""))
        if not is_reachable(url):
            raise ProviderUnavailable("Enable Banking sent an address that cannot be opened.", detail="url of /auth")
        return Redirect(url=url, memo={"bank": bank["name"], "country": country, **_kept_settings(is_business)})

    def _exchange_code(self, connection: Connection, reply: Reply, now: datetime) -> Done:
        code = reply.returned.get("code")
        if not code:
            raise UserActionRequired(
                "The bank gave no access, or you declined it. Nothing was connected.",
                detail=str(reply.returned.get("error", ""))[:40],
            )
        session = self._application.post("/sessions", {"code": code}, now=now)
        id_ = session.get("session_id")
        if not isinstance(id_, str) or not SESSION_ID.fullmatch(id_):
            raise damage("no session")
        bank = str(reply.memo.get("bank") or connection.bank_name)
        return Done(
            bank_name=bank,
            settings={
                "bank": bank,
                "country": str(reply.memo.get("country", "")),
                **_kept_settings(reply.memo.get("psu_type") == BUSINESS),
                "accounts": {_key_of(each): account_facts(each) for each in objects(session.get("accounts"))},
            },
            secrets={"session": id_},
            consent_expires_at=moment(members(session.get("access")).get("valid_until")),
        )


def _banks_called(wanted: str, banks: Sequence[Json]) -> Sequence[Json]:
    """The bank of this name, whatever its case; where there is none, all whose names begin so."""
    name = wanted.casefold()
    called = [each for each in banks if each["name"].casefold() == name]
    return called[:1] or [each for each in banks if name and each["name"].casefold().startswith(name)]


def _psu_type(is_business: bool) -> str:
    return BUSINESS if is_business else "personal"


def _kept_settings(is_business: bool) -> Json:
    """The setting that says, for the renewal, that the accounts are those of a business; empty for those of a private
    person."""
    return {"psu_type": BUSINESS} if is_business else {}


def _key_of(account: Json) -> str:
    return str(account.get("identification_hash") or account.get("uid"))


def _days(until: str | None, today: date) -> Sequence[int]:
    """The numbers of days to ask back, to be tried in order until the bank accepts the period. `until` is when the
    account was last read, None for never; where a consent had run out, that may be months ago."""
    if until is None:
        return FIRST_DAYS
    missed = (today - date.fromisoformat(until)).days + OVERLAP_DAYS
    longest = min(max(missed, LATER_DAYS), FIRST_DAYS[0])
    return (longest, *(days for days in FIRST_DAYS if days < longest))


def _rows(ask: Ask, days: Sequence[int], today: date) -> tuple[list[Json], date | None]:
    """The bookings of an account as far back as the bank accepts, and the day from which they are complete; None for
    the day where the list was broken off by a page that leads back to an earlier one, or that the bank refuses."""
    *longer, shortest = days
    for back in longer:
        with suppress(WrongPeriod):
            return _pages(ask, today - timedelta(days=back))
    return _pages(ask, today - timedelta(days=shortest))


def _older_rows(ask: Ask, before: date) -> list[Json]:
    """The bookings before that day, as far back as the bank gives for its longest period; none where it refuses. Such a
    list may lack the last days, so its bookings from that day on are not used, and no days count as complete by it."""
    since = before.replace(year=before.year - OLDEST_YEARS, day=1)
    with suppress(ProviderUnavailable, NotAccessible, RateLimited):
        rows, _ = _pages(ask, since, strategy="longest")
        return [each for each in rows if (booking_date(each) or before) < before]
    return []


def _pages(ask: Ask, since: date, **more: str) -> tuple[list[Json], date | None]:
    rows: list[Json] = []
    before: list[Json] = []  # rows of the page before, of which the next one may repeat some
    seen: set[str] = set()
    first = parameters = {"date_from": since.isoformat(), **more}
    for _ in range(PAGES_MAX):
        try:
            page = ask(parameters)
        except (RequestRefused, WrongPeriod):
            if not seen:
                raise
            return rows, None  # the bank refuses the next page that it has named itself
        here = [_without_changing_id(each) for each in objects(page.get("transactions"))]
        new = here[_count_repeated(before, here) :]
        rows += [each for each in new if not (each.get("entry_reference") and each in before)]
        key = str(page.get("continuation_key") or "")
        if not key:
            return rows, since
        if key in seen:
            return rows, None
        seen.add(key)
        before, parameters = here, {**first, "continuation_key": key}
    raise EndlessPages(detail=f"{PAGES_MAX} pages")


def _count_repeated(before: Sequence[Json], here: Sequence[Json]) -> int:
    """How many rows at the beginning of a page are the last ones of the page `before`, told again because the list has
    moved. A reference or two days among them prove that: equal rows of one day may be as many bookings."""
    for count in range(min(len(before), len(here)), 0, -1):
        again = here[:count]
        if before[-count:] == again:
            is_proven = any(each.get("entry_reference") for each in again) or len(set(map(booking_date, again))) > 1
            return count if is_proven else 0
    return 0


def _without_changing_id(row: Json) -> Json:
    """The row without its `transaction_id`, which differs in every answer."""
    return {name: value for name, value in row.items() if name != "transaction_id"}
