"""Enable Banking: European banks, through an application of the operator at a licensed provider.

The person chooses the bank, signs in there, and comes back with a code that is exchanged once for a session; it holds
until the day that the consent names. An account's `uid` dies with its session, `identification_hash` does not.

Descriptions: https://enablebanking.com/docs/api/reference/
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt

from connectors.connecting import Done, FormField, Question, Redirect, Reply, Sentence, Step
from connectors.connector import (
    Connection,
    ConsentExpired,
    ConsentRevoked,
    Json,
    LeftOut,
    Misconfigured,
    ProviderUnavailable,
    RateLimited,
    Ready,
    SourceError,
    UserActionRequired,
    Waiting,
)
from connectors.outgoing_http import Provider, ProviderAnswer
from connectors.reachable import is_reachable
from connectors.text import clean, clean_key, clean_purpose, parse_amount, parse_bic, parse_date, parse_iban
from storage.importing.records import (
    AccountKind,
    AccountRecord,
    Batch,
    Record,
    StatementRecord,
    TransactionRecord,
)

FIRST_DAYS = (365, 90, 28)  # each tried where the bank calls the one before too long
LATER_DAYS = (35, 28)
PAGES_MAX = 200
TOKEN_LIFETIME = timedelta(hours=1)
CONSENT_MAX = timedelta(days=180)  # PSD2: "at least every 180 days", Delegated Regulation (EU) 2022/2360
CLOSING = ("CLBD", "ITBD", "XPCD")  # booked balances, the best first; never CLAV, which knows credit lines
PENDING, LEFT_OUT = ("PDNG", "HOLD"), ("SCHD", "RJCT", "CNCL")
KINDS: Mapping[str, AccountKind] = {
    "CACC": "checking",
    "TRAN": "checking",
    "CASH": "checking",
    "SVGS": "savings",
    "CARD": "credit_card",
    "LOAN": "loan",
}
CURRENCY = re.compile("[A-Z]{3}")
CODE = re.compile("[A-Z]{4}")
COUNTRY_CODE = re.compile("[A-Z]{2}")
SESSION_ID = re.compile(r"[\w-]{1,100}")
MANDATE, CREDITOR, END_TO_END = (re.compile(rf"\b{mark}\+\s*(\S+)") for mark in ("MREF", "CRED", "EREF"))

COUNTRY = Question(
    text=Sentence(en="In which country is your bank?", de="In welchem Land ist Ihre Bank?"),
    fields=(
        FormField(name="country", label=Sentence(en="Country, two letters", de="Land, zwei Buchstaben"), default="DE"),
    ),
)
NO_COUNTRY = Sentence(en="Two letters, such as DE or AT.", de="Zwei Buchstaben wie DE oder AT.")
WHICH_BANK = Sentence(en="Which bank is it? You sign in there.", de="Welche Bank ist es? Sie melden sich dort an.")
NO_SUCH_BANK = Sentence(en="This bank is not in the list.", de="Diese Bank steht nicht in der Liste.")
DENIED = "The bank gave no access, or you declined it. Nothing was connected."


class EnableBanking:
    """Implements `LiveSource`; the secret of a connection is {"session": id}, its settings are bank, country and what
    the bank said of the accounts."""

    name = "enable-banking"
    title = "Enable Banking"
    about = Sentence(
        en="Banks in Europe: you sign in at your bank, and the access lasts up to 180 days.",
        de="Banken in Europa: Sie melden sich bei Ihrer Bank an, und der Zugang gilt bis zu 180 Tage.",
    )
    is_local = False
    unattended_syncs_max = 4  # Delegated Regulation (EU) 2018/389, article 36 (5) (b)

    def __init__(self, address: str, *, application: str, key_file: Path | None) -> None:
        """`application` and the file with its private key are the operator's."""
        self._provider = Provider(address)
        self._application = application
        self._key_file = key_file

    @property
    def is_set_up(self) -> bool:
        """Whether the operator has an application there."""
        return bool(self._application) and self._key_file is not None

    def begin_connect(self, connection: Connection, reply: Reply, *, now: datetime) -> Step:
        """Country, bank, the bank's own page, and the exchange of what the browser comes back with."""
        if reply.returned:
            return self._exchanged(connection, reply, now)
        country = str(reply.given.get("country") or connection.settings.get("country", "")).strip().upper()
        if not country:
            return COUNTRY
        if not COUNTRY_CODE.fullmatch(country):
            return Question(text=COUNTRY.text, fields=COUNTRY.fields, problem=NO_COUNTRY)
        wanted = str(reply.given.get("bank") or connection.settings.get("bank", "")).strip()
        banks = self._banks(country, now)
        chosen = next((each for each in banks if each["name"].casefold() == wanted.casefold()), None)
        if chosen is None:
            choices = tuple((each["name"], each["name"]) for each in banks)
            field = FormField(name="bank", label=Sentence(en="Bank", de="Bank"), choices=choices)
            return Question(text=WHICH_BANK, fields=(field,), problem=NO_SUCH_BANK if wanted else None)
        return self._sent_to(chosen, country, reply, now)

    def disconnect(self, connection: Connection, *, now: datetime) -> None:
        """End the session; one that is over already is as good."""
        session = connection.secrets.get("session")
        if session:
            answer = self._provider.delete(f"/sessions/{session}", headers=self._headers(now))
            if answer.status >= 400 and _error_of(answer) not in (
                "EXPIRED_SESSION",
                "REVOKED_SESSION",
                "CLOSED_SESSION",
            ):
                raise _refusal(answer)

    def start_refresh(self, connection: Connection, *, now: datetime) -> Json:  # noqa: ARG002 - the protocol names them
        """Nothing to begin: the bank is asked while its data are fetched."""
        return {"at": now.isoformat()}

    def poll_refresh(self, connection: Connection, handle: Json, *, now: datetime) -> Waiting | Ready:
        """What the session still opens, and until when."""
        session = self._members(connection, f"/sessions/{_session_of(connection)}", {}, now)
        match session.get("status"):
            case "AUTHORIZED":
                pass
            case "EXPIRED":
                raise ConsentExpired(detail="status of the session")
            case "REVOKED" | "CLOSED" | "CANCELLED":
                raise ConsentRevoked(detail="status of the session")
            case _:
                raise UserActionRequired(detail="status of the session")
        accounts = [
            {"uid": str(each["uid"]), "key": str(each.get("identification_hash") or each["uid"])}
            for each in _objects(
                session.get("accounts_data") or [{"uid": uid} for uid in session.get("accounts") or []]
            )
            if isinstance(each.get("uid"), str)
        ]
        until = _moment(_dict(session.get("access")).get("valid_until"))
        return Ready(handle={**handle, "at": now.isoformat(), "accounts": accounts}, consent_expires_at=until)

    def fetch(
        self, connection: Connection, handle: Json, *, cursor: Json | None, today: date
    ) -> Iterator[Batch | LeftOut]:
        """A batch per account with all its pages; one that the bank refuses is left out."""
        now, loaded = datetime.fromisoformat(handle["at"]), list((cursor or {}).get("loaded", []))
        for account in handle["accounts"]:
            key, uid = account["key"], account["uid"]
            known = _dict(connection.settings.get("accounts")).get(key) or self._details(connection, uid, now)
            name = clean(known.get("name")) or clean(known.get("product")) or known.get("iban") or key[:8]
            try:
                balances = _objects(self._members(connection, f"/accounts/{uid}/balances", {}, now).get("balances"))
                days = LATER_DAYS if key in loaded else FIRST_DAYS
                rows, is_complete = self._transactions(connection, uid, days, now, today)
            except NotAccessible as error:
                yield LeftOut(name=name, reason=str(error))
                continue
            currency = str(known.get("currency") or _currency_of(balances, rows))
            if not CURRENCY.fullmatch(currency) or currency == "XXX":
                yield LeftOut(name=name, reason="It has no currency that is known here.")
                continue
            loaded = [*loaded, *([key] if key not in loaded else [])]
            yield Batch(
                id=f"enable-banking:{connection.id}:{key}:{handle['at']}",
                name=name,
                records=_records(
                    connection, key, known, currency, balances, rows, is_complete=is_complete, today=today
                ),
                cursor={"loaded": loaded},
            )

    def settle(self, connection: Connection, handle: Json, *, batch: Batch, refusal: str | None) -> None:
        """Nothing to tidy up."""

    def has_news(self, connection: Connection, *, now: datetime) -> bool:  # noqa: ARG002 - as above
        """Never by itself: accesses are counted."""
        return False

    def _banks(self, country: str, now: datetime) -> list[dict[str, Any]]:
        answer = self._provider.get(
            "/aspsps", parameters={"country": country, "psu_type": "personal"}, headers=self._headers(now)
        )
        if answer.status != 200:
            raise _refusal(answer)
        banks = [each for each in _objects(answer.members().get("aspsps")) if isinstance(each.get("name"), str)]
        return sorted(banks, key=lambda each: str(each["name"]).casefold())

    def _sent_to(self, bank: Mapping[str, Any], country: str, reply: Reply, now: datetime) -> Step:
        longest = bank.get("maximum_consent_validity")
        lasts = min(CONSENT_MAX, timedelta(seconds=longest)) if isinstance(longest, int) else CONSENT_MAX
        answer = self._provider.post(
            "/auth",
            document={
                "access": {"valid_until": (now + lasts).replace(tzinfo=UTC, microsecond=0).isoformat()},
                "aspsp": {"name": bank["name"], "country": country},
                "state": reply.state,
                "redirect_url": reply.return_url,
                "psu_type": "personal",
            },
            headers=self._headers(now),
        )
        if answer.status != 200:
            raise _refusal(answer)
        url = str(answer.members().get("url", ""))
        if not is_reachable(url):
            raise ProviderUnavailable("Enable Banking sent an address that cannot be opened.", detail="url of /auth")
        return Redirect(url=url, memo={"bank": bank["name"], "country": country})

    def _exchanged(self, connection: Connection, reply: Reply, now: datetime) -> Done:
        code = reply.returned.get("code")
        if not code:
            raise UserActionRequired(DENIED, detail=str(reply.returned.get("error", ""))[:40])
        answer = self._provider.post("/sessions", document={"code": code}, headers=self._headers(now))
        if answer.status != 200:
            raise _refusal(answer)
        session = answer.members()
        id_, until = session.get("session_id"), _moment(_dict(session.get("access")).get("valid_until"))
        if not isinstance(id_, str) or not SESSION_ID.fullmatch(id_):
            raise ProviderUnavailable("Enable Banking sent a damaged answer.", detail="no session")
        accounts = {str(each.get("identification_hash")): _as_known(each) for each in _objects(session.get("accounts"))}
        bank = str(reply.memo.get("bank") or connection.bank_name)
        return Done(
            bank_name=bank,
            settings={"bank": bank, "country": str(reply.memo.get("country", "")), "accounts": accounts},
            secrets={"session": id_},
            consent_expires_at=until,
        )

    def _details(self, connection: Connection, uid: str, now: datetime) -> dict[str, Any]:
        return _as_known(self._members(connection, f"/accounts/{uid}/details", {}, now))

    def _transactions(
        self, connection: Connection, uid: str, days: tuple[int, ...], now: datetime, today: date
    ) -> tuple[list[dict[str, Any]], bool]:
        """All rows, and whether they are all there are."""
        for number, back in enumerate(days, start=1):
            try:
                return self._pages(connection, uid, today - timedelta(days=back), now)
            except WrongPeriod:
                if number == len(days):
                    raise
        raise AssertionError("there is a last one")

    def _pages(self, connection: Connection, uid: str, since: date, now: datetime) -> tuple[list[dict[str, Any]], bool]:
        rows: list[dict[str, Any]] = []
        before: list[dict[str, Any]] = []  # rows of the page before, which some banks begin the next one with
        seen: set[str] = set()
        parameters = {"date_from": since.isoformat()}
        for _ in range(PAGES_MAX):
            page = self._members(connection, f"/accounts/{uid}/transactions", parameters, now)
            here = [_lasting(each) for each in _objects(page.get("transactions"))]
            rows += [each for each in here if not (each.get("entry_reference") and each in before)]
            key = page.get("continuation_key")
            if not key:
                return rows, True
            if key in seen:
                return rows, False
            seen.add(key)
            before, parameters = here, {"date_from": since.isoformat(), "continuation_key": str(key)}
        raise ProviderUnavailable("The bank's list of bookings has no end.", detail=f"{PAGES_MAX} pages")

    def _members(
        self, connection: Connection, path: str, parameters: Mapping[str, str], now: datetime
    ) -> dict[str, Any]:
        answer = self._provider.get(path, parameters=parameters, headers=self._headers(now, connection))
        if answer.status != 200:
            raise _refusal(answer)
        return answer.members()

    def _headers(self, now: datetime, connection: Connection | None = None) -> dict[str, str]:
        """Who asks: a token of an hour; and the person, if one is there. All of it is said of a person, or nothing."""
        if not self._application or self._key_file is None:
            raise Misconfigured(
                "Enable Banking is not set up here: the operator sets BANKDATA_ENABLE_BANKING_APPLICATION and"
                " BANKDATA_ENABLE_BANKING_KEY_FILE."
            )
        at = now.replace(tzinfo=UTC)
        claims = {
            "iss": "enablebanking.com",
            "aud": "api.enablebanking.com",
            "iat": int(at.timestamp()),
            "exp": int((at + TOKEN_LIFETIME).timestamp()),
        }
        try:
            key = self._key_file.read_bytes()
            token = jwt.encode(claims, key, algorithm="RS256", headers={"kid": self._application})
        except (OSError, ValueError, jwt.PyJWTError) as error:
            raise Misconfigured(
                "The key file of Enable Banking cannot be used: see BANKDATA_ENABLE_BANKING_KEY_FILE.",
                detail=type(error).__name__,
            ) from error
        person = connection.attended if connection is not None else None
        said = (
            {
                "Psu-Ip-Address": person.address,
                "Psu-User-Agent": person.user_agent,
                "Psu-Accept": person.accept,
                "Psu-Accept-Language": person.accept_language,
            }
            if person is not None
            else {}
        )
        return {"Authorization": f"Bearer {token}", **said}


class WrongPeriod(ProviderUnavailable):
    """The bank tells nothing of so short a time."""


class NotAccessible(SourceError):
    """The bank does not give access to this account."""


def _error_of(answer: ProviderAnswer) -> str:
    try:
        return str(answer.members().get("error", ""))[:60]
    except ProviderUnavailable:
        return ""


def _refusal(answer: ProviderAnswer) -> SourceError:
    code = _error_of(answer)
    detail = f"status {answer.status} {code}".strip()
    match code:
        case "EXPIRED_SESSION":
            return ConsentExpired(detail=detail)
        case "REVOKED_SESSION" | "CLOSED_SESSION" | "SESSION_DOES_NOT_EXIST":
            return ConsentRevoked(detail=detail)
        case "ASPSP_PSU_ACTION_REQUIRED":
            return UserActionRequired(detail=detail)
        case "ASPSP_RATE_LIMIT_EXCEEDED":
            return RateLimited(detail=detail, retry_after=answer.retry_after)
        case "WRONG_TRANSACTIONS_PERIOD":
            return WrongPeriod(detail=detail)
        case "ASPSP_ACCOUNT_NOT_ACCESSIBLE":
            return NotAccessible(detail=detail)
    if answer.status in (401, 402, 403):
        return Misconfigured(
            "Enable Banking refuses this server's application: see to it in their control panel.", detail=detail
        )
    return ProviderUnavailable("The bank could not be asked through Enable Banking.", detail=detail)


def _session_of(connection: Connection) -> str:
    session = connection.secrets.get("session")
    if not session:
        raise UserActionRequired(detail="no session")
    return str(session)


def _as_known(account: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of an account, as the bank said it when it was connected."""
    return {
        "iban": _dict(account.get("account_id")).get("iban"),
        "name": account.get("details") or account.get("name"),
        "product": account.get("product"),
        "kind": account.get("cash_account_type"),
        "currency": account.get("currency"),
        "bic": _dict(account.get("account_servicer")).get("bic_fi"),
    }


def _lasting(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row without its `transaction_id`, which is another one at every call."""
    return {name: value for name, value in row.items() if name != "transaction_id"}


def _currency_of(balances: list[dict[str, Any]], rows: list[dict[str, Any]]) -> str:
    amounts = [each.get("balance_amount") for each in balances] + [each.get("transaction_amount") for each in rows]
    return next((str(each["currency"]) for each in map(_dict, amounts) if each.get("currency")), "")


def _records(
    connection: Connection,
    key: str,
    known: Mapping[str, Any],
    currency: str,
    balances: list[dict[str, Any]],
    rows: list[dict[str, Any]],
    *,
    is_complete: bool,
    today: date,
) -> Iterator[Record]:
    yield AccountRecord(
        stable_key=key,
        currency=currency,
        iban=parse_iban(known.get("iban")),
        name=clean(known.get("name")) or clean(known.get("product")),
        kind=KINDS.get(str(known.get("kind"))),
        bank_name=connection.bank_name,
        bic=parse_bic(known.get("bic")),
    )
    told = Counter(str(each.get("entry_reference")) for each in rows)
    for each in rows:
        if each.get("status") not in LEFT_OUT:
            yield _booking(each, told)
    closing = _closing(balances, currency)
    yield StatementRecord(
        closing=_amount(_dict(closing.get("balance_amount")).get("amount")) if closing else None,
        closing_date=(_day(closing.get("reference_date")) or today) if closing else None,
        is_pending_complete=is_complete,
    )


def _closing(balances: list[dict[str, Any]], currency: str) -> dict[str, Any] | None:
    for kind in CLOSING:
        for each in balances:
            if each.get("balance_type") == kind and _dict(each.get("balance_amount")).get("currency") == currency:
                return each
    return None


def _booking(row: Mapping[str, Any], told: Mapping[str, int]) -> TransactionRecord:
    amount, is_debit = _dict(row.get("transaction_amount")), row.get("credit_debit_indicator") == "DBIT"
    role = "creditor" if is_debit else "debtor"
    agent, text = _dict(row.get(f"{role}_agent")), [str(each) for each in row.get("remittance_information") or []]
    reference, joined = str(row.get("entry_reference")), " ".join(text)
    is_lasting = row.get("entry_reference") is not None and reference != "0" and told[reference] == 1
    code = _dict(row.get("bank_transaction_code"))
    day = next(
        (day for name in ("booking_date", "transaction_date", "value_date") if (day := _day(row.get(name)))), None
    )
    if day is None:
        raise ProviderUnavailable("The bank sent a booking without a day.", detail="no date")
    value = _amount(amount.get("amount"))
    return TransactionRecord(
        amount=-abs(value) if is_debit else value,
        currency=str(amount.get("currency")),
        booking_date=day,
        value_date=_day(row.get("value_date")),
        status="pending" if row.get("status") in PENDING else "booked",
        provider_id=clean_key(reference) if is_lasting else None,
        counterpart_name=clean(_dict(row.get(role)).get("name")),
        counterpart_iban=parse_iban(_dict(row.get(f"{role}_account")).get("iban")),
        counterpart_bic=parse_bic(agent.get("bic_fi")),
        counterpart_bank_name=clean(agent.get("name")),
        mandate_reference=_found(MANDATE, joined),
        creditor_id=_found(CREDITOR, joined),
        end_to_end_id=_found(END_TO_END, joined),
        purpose=clean_purpose(*text),
        bank_transaction_code=_iso_code(code),
        mcc=str(row["merchant_category_code"]) if row.get("merchant_category_code") else None,
        bank_text=clean(code.get("description")),
    )


def _iso_code(code: Mapping[str, Any]) -> str | None:
    """Family and sub-family; the domain is not said, and bookings of accounts are payments."""
    family, below = str(code.get("code")), str(code.get("sub_code"))
    return f"PMNT-{family}-{below}" if CODE.fullmatch(family) and CODE.fullmatch(below) else None


def _found(mark: re.Pattern[str], text: str) -> str | None:
    match = mark.search(text)
    return clean_key(match[1]) if match else None


def _dict(found: object) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}


def _objects(found: object) -> list[dict[str, Any]]:
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ProviderUnavailable("Enable Banking sent a damaged answer.", detail="not a list of objects")
    return found


def _amount(text: object) -> Any:
    try:
        return parse_amount(str(text))
    except ValueError as error:
        raise ProviderUnavailable("Enable Banking sent a damaged answer.", detail="no amount") from error


def _day(text: object) -> date | None:
    if not text:
        return None
    try:
        return parse_date(str(text))
    except ValueError as error:
        raise ProviderUnavailable("Enable Banking sent a damaged answer.", detail="no day") from error


def _moment(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).replace(tzinfo=None)
