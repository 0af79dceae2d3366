"""The connector for FinTS: it asks the customer in the command or on the page, and syncs read accounts, balances and
bookings.

One sync is one dialog. With a stored PIN, syncs follow the schedule; without, the customer renews the connection for
every sync, and the PIN is kept encrypted from that answer until the dialog begins. If the bank wants an approval while
nobody is present, the sync ends at once, and no other begins before the connection is renewed.
"""

import hashlib
import io
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO

from msgspec.structs import replace

from analytics.messages import Message
from analytics.records import (
    AccountKind,
    AccountRecord,
    Batch,
    Record,
    StatementRecord,
    TransactionRecord,
)
from connectors.connecting import Done, FormField, LiveSource, Question, Reply, Step
from connectors.connector import Connection, Json, LeftOut, Misconfigured, UserActionRequired
from connectors.reachable import is_reachable
from connectors.reference.bank_names import GERMAN_IBAN_LENGTH, bank_name
from connectors.text import clean, currency_of, parse_iban

if TYPE_CHECKING:
    from connectors.sources.fints.dialog import Access, Challenge, Choice, OpenDialog, ReportedAccount

FIRST_DAYS = 89  # from the 91st day on, the bank wants an approval for the bookings themselves
LATER_DAYS = 35  # late bookings and corrections
OVERLAP_DAYS = 10  # before the last sync, where that is longer ago
CONSENT = timedelta(days=180)  # Delegated Regulation (EU) 2022/2360: then the bank requires its customer again
APPROVAL_WITHIN = timedelta(minutes=5)
BANK_CODE = re.compile("[0-9]{8}")
YES, NO = "yes", "no"
KINDS: tuple[tuple[range, AccountKind], ...] = (
    (range(1, 10), "checking"),
    (range(10, 30), "savings"),
    (range(30, 40), "securities"),
    (range(40, 50), "loan"),
    (range(50, 60), "credit_card"),
    (range(60, 70), "securities"),
    (range(70, 80), "building_savings"),
)
"""The account types of FinTS 3.0 (HIUPD; Formals, chapter E.2): current, savings and term, securities, loan, card,
funds, building savings."""

NO_LIBRARY = "FinTS needs a library that is not installed. Install banking-data-service[fints]."
NO_PRODUCT = (
    "FinTS needs a product id of the Deutsche Kreditwirtschaft (a free form at fints.org). Set BANKDATA_FINTS_PRODUCT."
)
NO_BANK = (
    "Say which bank it is: `bankdata connect fints --url URL --bank-code DIGITS`, the address beginning with https://"
    " and the bank code of eight digits."
)
NO_PIN = "The PIN is not stored, so this bank is asked only when you renew the connection."
TOO_LATE = "The bank was not told of your approval within five minutes. Begin again."

BANK = FormField(name="bank_code", label=Message("Which bank?"))
LOGIN = FormField(name="login", label=Message("Login at the bank"))
PIN = FormField(name="pin", label=Message("PIN"), is_secret=True)
KEEP_PIN = FormField(
    name="keep_pin",
    label=Message("Store the PIN (encrypted), for syncs without you"),
    choices=((NO, "no / nein"), (YES, "yes / ja")),
    default=NO,
)
TAN = FormField(name="tan", label=Message("TAN"), is_secret=True)
IS_APPROVED = FormField(
    name="tan",
    label=Message("Have you approved it?"),
    choices=((YES, "yes / ja"), (NO, "no, go on without / nein, ohne")),
    is_optional=True,
)
SIGN_IN = Message("Sign in to your bank as in its online banking.")
WHICH = {
    "method": Message("How do you approve at this bank?"),
    "medium": Message("Which device do you use for that?"),
}
BY_BANK = "{words}"  # the text of a bank, the same in every language
OLDER = Message(
    "The bank wants another approval for transactions older than 89 days. To go on without them, leave it out."
)
NOT_YET = Message("The bank has not accepted this yet.")
PIN_WRONG = Message("The bank refused this PIN. Three wrong ones lock the account.")

ReadFile = Callable[[BinaryIO], Iterator[Record]]


class FinTs(LiveSource):
    """The source FinTS. The settings of a connection are {"url", "bank_code", "attended_only"}. Its secrets are
    {"login", "state", "method", "medium"}; {"pin"} if it is stored, else {"pin_once"} until the next dialog; and until
    the next sync {"older"}, earlier bookings that the bank gave while its customer was present."""

    name = "fints"
    title = "FinTS"
    about = Message("Banks in Germany, asked straight, with the login of their online banking.")
    is_local = False
    unattended_syncs_max = None  # customers ask for themselves; the four of PSD2 are for third parties

    def __init__(self, product: str, read_file: ReadFile, banks: Mapping[str, str] = MappingProxyType({})) -> None:
        """Prepare dialogs. `product` is the id of this program at the banks, empty for none; `read_file` reads camt and
        MT940. `banks` are the addresses that the operator has named, by bank code; a page accepts no others."""
        self._product = product
        self._read_file = read_file
        self._banks = banks

    @property
    def is_set_up(self) -> bool:
        """Whether a page can offer banks: there is a product id, and the operator has named banks. Without banks,
        connecting takes a command with the address, and a page can only renew."""
        return bool(self._product and self._banks)

    def next_step(self, connection: Connection, answer: Reply, *, now: datetime) -> Step:
        """The next step: ask for login and PIN, open a dialog, have it approved, look for accounts and, the first time,
        for bookings so old that the bank may want an approval for them."""
        given = {**connection.settings, **answer.given}
        if not self._product:
            raise Misconfigured(NO_PRODUCT)
        if not given.get("url") and self._banks:  # from a page, which accepts no address
            if not given.get("bank_code"):
                return self._which_bank()
            given["url"] = self._banks.get(given["bank_code"], "")
        if not is_reachable(str(given.get("url", ""))) or not BANK_CODE.fullmatch(str(given.get("bank_code", ""))):
            raise Misconfigured(NO_BANK)
        dialog = _library()
        if not given.get("pin"):
            return _sign_in(connection, given)
        access = self._access(given, connection.secrets)
        try:
            paused, older = answer.memo.get("paused"), answer.memo.get("older")
            if paused and older is not None:
                tan = str(given.get("tan", ""))
                is_left_out = tan in ("", NO) or datetime.fromisoformat(answer.memo["since"]) + APPROVAL_WITHIN < now
                with dialog.resume_dialog(access, paused, tan, of_order=True) as reached:
                    if is_left_out:
                        return self._finish(reached, given, now, older["found"])
                    return self._done_with_older(reached, given, older, now=now, is_answered=True)
            if paused:
                if datetime.fromisoformat(answer.memo["since"]) + APPROVAL_WITHIN < now:
                    raise UserActionRequired(TOO_LATE)
                with dialog.resume_dialog(access, paused, str(given.get("tan", ""))) as reached:
                    return self._step_of(connection, reached, given, now=now, since=answer.memo["since"])
            with dialog.open_dialog(access) as reached:
                return self._step_of(connection, reached, given, now=now, since=now.isoformat())
        except dialog.PinRefused:
            return _sign_in(connection, given, problem=PIN_WRONG)

    def is_same_login(self, known: Connection, done: Done) -> bool | None:
        """Whether both are the same login at the same bank; None where the known one has no login stored."""
        before, now = known.secrets.get("login"), done.secrets["login"]
        return (before, known.settings.get("bank_code")) == (now, done.settings["bank_code"]) if before else None

    def disconnect(self, connection: Connection, *, now: datetime) -> None:
        """Do nothing: a bank keeps no record of who may use FinTS besides the PIN."""

    def start_refresh(self, connection: Connection, *, now: datetime) -> Json:  # noqa: ARG002 - the protocol names them
        """Begin nothing. Raises UserActionRequired for a sync without a PIN."""
        if not _pin_of(connection.secrets):
            raise UserActionRequired(NO_PIN)
        return {}

    def fetch(
        self,
        connection: Connection,
        handle: Json,  # noqa: ARG002 - the protocol names it
        *,
        cursor: Json | None,
        today: date,
    ) -> Iterator[Batch | LeftOut]:
        """One dialog, and a batch for each account in it; an account whose bookings the bank refuses is yielded as
        LeftOut. The cursor has the day of the last reading for each account, because a crash may come between two
        accounts, and a bank may refuse one of them for a time.

        Secrets change on the way: a PIN for one time is deleted before the dialog, and a PIN that the bank refuses
        after it; the library's new state is kept, and older bookings are deleted once they are stored.
        """
        dialog, until = _library(), dict(cursor["until"]) if cursor is not None else {}
        before = dict(until)
        secrets = dict(connection.secrets)
        pin = _pin_of(secrets)
        if not pin:
            raise UserActionRequired(NO_PIN)
        if secrets.pop("pin_once", None):
            connection.keep_secrets(secrets)
        access = self._access({**connection.settings, "pin": pin}, secrets)
        try:
            with dialog.open_dialog(access) as reached:
                if not isinstance(reached, dialog.OpenDialog):
                    raise dialog.ApprovalNeeded
                accounts = reached.read(lambda key: _first_day(until.get(key), today), today)
                secrets["state"] = reached.state
        except dialog.PinRefused:
            secrets.pop("pin", None)
            connection.keep_secrets(secrets)
            raise
        connection.keep_secrets(secrets)
        older = secrets.get("older", {})
        left = dict(older)  # for an account that the bank leaves out this time
        for account in accounts:
            if account.refusal is not None:
                yield LeftOut(name=account.name or account.number, reason=_refusal(account.refusal))
            else:
                until[account.key] = today.isoformat()
                told_from = _first_day(before.get(account.key), today)
                account = replace(account, older=[dialog.unpack(each) for each in left.pop(account.key, ())])
                yield self._batch(connection, account, told_from, today, cursor={"until": dict(until)})
        if left != older:  # a batch has been stored when the next one is requested
            rest = {name: each for name, each in secrets.items() if name != "older"}
            connection.keep_secrets({**rest, **({"older": left} if any(left.values()) else {})})

    def _which_bank(self) -> Question:
        """The question which of the operator's banks is meant."""
        names = {code: bank_name(f"DE00{code}".ljust(GERMAN_IBAN_LENGTH, "0")) for code in self._banks}
        options = [(code, f"{name} ({code})" if name else code) for code, name in names.items()]
        return Question(text=BANK.label, fields=(replace(BANK, choices=options),))

    def _access(self, given: Mapping[str, Any], secrets: Json) -> "Access":
        from connectors.sources.fints.dialog import Access

        is_same = given.get("login") in (None, "", secrets.get("login"))
        known = secrets if is_same else {}
        return Access(
            url=str(given["url"]),
            bank_code=str(given["bank_code"]),
            login=str(given.get("login") or secrets.get("login") or ""),
            pin=str(given["pin"]),
            product=self._product,
            state=known.get("state"),
            method=given.get("method") or known.get("method"),
            medium=given.get("medium") or known.get("medium"),
        )

    def _step_of(
        self,
        connection: Connection,
        reached: "OpenDialog | Challenge | Choice",
        given: Mapping[str, Any],
        *,
        now: datetime,
        since: str,
    ) -> Step:
        """The step that follows from the state of a dialog: a question for a choice or an approval, or Done. `since` is
        the time at which the dialog began, in ISO form: an approval is accepted for five minutes. Raises
        UserActionRequired where the login has no account."""
        from connectors.sources.fints.dialog import Challenge, Choice

        if isinstance(reached, Choice):
            chosen = FormField(name=reached.of, label=WHICH[reached.of], choices=reached.options)
            return Question(text=WHICH[reached.of], fields=(chosen,), memo={"chosen": reached.of})
        if isinstance(reached, Challenge):
            return _question_of(reached, since, Message(BY_BANK, words=_plain_words(reached.text)))
        if not (accounts := reached.accounts()):
            raise UserActionRequired("The bank shows no account for this login.")
        if connection.secrets.get("login"):
            return self._finish(reached, given, now)
        return self._done_with_older(reached, given, {"found": {}, "left": accounts}, now=now)

    def _done_with_older(
        self, opened: "OpenDialog", given: Mapping[str, Any], known: Json, *, now: datetime, is_answered: bool = False
    ) -> Step:
        """The finished connection, with older bookings that the bank gives only while its customer is present; or the
        question for an approval of them. `known` is the last result of `OpenDialog.older`; `is_answered` says that this
        question was answered."""
        older, wanted = opened.older(now.date(), known)
        if wanted is None:
            return self._finish(opened, given, now, older["found"])
        words = _plain_words(wanted.text)
        text = Message("{question} {words}", question=OLDER, words=words)
        asked = _question_of(wanted, now.isoformat(), text, older=older)
        return replace(asked, problem=NOT_YET) if is_answered and older["left"] == known["left"] else asked

    def _finish(self, opened: "OpenDialog", given: Mapping[str, Any], now: datetime, older: Json | None = None) -> Done:
        is_kept = given.get("keep_pin") == YES
        kept = {name: str(given[name]) for name in ("method", "medium") if given.get(name)}
        return Done(
            bank_name=clean(opened.bank_name) or self.title,
            settings={"url": given["url"], "bank_code": given["bank_code"], "attended_only": not is_kept},
            secrets={
                **kept,
                "login": str(given["login"]),
                "state": opened.state,
                "pin" if is_kept else "pin_once": str(given["pin"]),
                **({"older": older} if any((older or {}).values()) else {}),
            },
            consent_expires_at=now + CONSENT,
        )

    def _batch(
        self, connection: Connection, account: "ReportedAccount", told_from: date, today: date, *, cursor: Json
    ) -> Batch:
        content = hashlib.sha256(repr((account, today)).encode()).hexdigest()
        return Batch(
            id=f"fints:{connection.id}:{content}",
            name=account.name or account.number,
            records=self._records(connection, account, told_from, today),
            cursor=cursor,
        )

    def _records(
        self, connection: Connection, account: "ReportedAccount", told_from: date, today: date
    ) -> Iterator[Record]:
        iban = parse_iban(account.iban)
        currency = account.currency or currency_of(iban)
        yield AccountRecord(
            stable_key=iban or account.number,
            currency=currency,
            iban=iban,
            name=clean(account.name),
            kind=next((kind for numbers, kind in KINDS if account.kind in numbers), "other"),
            bank_name=connection.bank_name,
        )
        for documents, is_older in ((account.older, True), (account.booked, False), (account.pending, False)):
            for document in documents:
                for record in self._read_file(io.BytesIO(document)):
                    if isinstance(record, TransactionRecord) and not (is_older and record.booking_date >= told_from):
                        yield record
        yield StatementRecord(
            closing=account.balance,
            closing_date=account.balance_day,
            told_from=told_from,
            told_until=today,
            is_pending_complete=True,
        )


def _question_of(wanted: "Challenge", since: str, text: Message, older: Json | None = None) -> Question:
    """The question for a challenge, in the words of `text`. With `older`, the result of `OpenDialog.older`, the
    approval is for older bookings and may be left out."""
    if older is None:
        fields, memo = () if wanted.is_in_app else (TAN,), {}
    else:
        fields = (IS_APPROVED if wanted.is_in_app else replace(TAN, is_optional=True),)
        memo = {"older": older}
    return Question(
        text=text,
        fields=fields,
        image=wanted.image,
        image_type=wanted.image_type or "image/png",
        again_after=wanted.wait if not fields else None,
        memo={"paused": wanted.paused, "since": since, **memo},
    )


def _library() -> Any:
    """The module that needs python-fints, an optional library. Raises Misconfigured where that is missing."""
    try:
        from connectors.sources.fints import dialog
    except ImportError as error:
        raise Misconfigured(NO_LIBRARY) from error
    return dialog


def _sign_in(connection: Connection, given: Mapping[str, Any], problem: Message | None = None) -> Question:
    """The question for login and PIN, with the known login of a renewed connection filled in. A login that was just
    given is not asked for again, unless the bank refused it together with the PIN (`problem`)."""
    named = replace(LOGIN, default=str(given.get("login") or connection.secrets.get("login") or ""))
    keep = replace(KEEP_PIN, default=YES if "pin" in connection.secrets else NO)
    is_given = bool(given.get("login")) and problem is None
    return Question(text=SIGN_IN, fields=(PIN, keep) if is_given else (named, PIN, keep), problem=problem)


def _pin_of(secrets: Json) -> str:
    return str(secrets.get("pin_once") or secrets.get("pin") or "")


def _first_day(until: str | None, today: date) -> date:
    """The first day of an account's bookings to read: 89 days back the first time, which needs no approval, and never
    earlier; later 35 days back, or ten days before the last reading where that is earlier."""
    first = today - timedelta(days=FIRST_DAYS)
    if until is None:
        return first
    last = date.fromisoformat(until) - timedelta(days=OVERLAP_DAYS)
    return max(first, min(last, today - timedelta(days=LATER_DAYS)))


def _plain_words(text: str) -> str:
    """The bank's text in one line, without the line breaks in markup that some banks put in; "TAN" where nothing is
    left."""
    plain = text.replace("<br>", "\n").replace("<br/>", "\n")
    return clean(plain, 2000) or "TAN"


def _refusal(code: str) -> str:
    return Message("The bank gives no transactions of this account (FinTS: {code}).", code=code)
