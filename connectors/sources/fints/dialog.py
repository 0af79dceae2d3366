"""A dialog with a FinTS bank: opened, approved by its customer where the bank wants that, read, and closed.

While the customer approves, nothing of a dialog stays in this process: it is saved as text, with the PIN in it, and
resumed from the text. The text has to be stored encrypted and safe from changes by others, because it is a pickle.
"""

import base64
import logging
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from fints.client import FinTSOperations, NeedRetryResponse, NeedTANResponse
from fints.exceptions import FinTSClientPINError, FinTSClientTemporaryAuthError, FinTSUnsupportedOperation
from fints.models import SEPAAccount
from msgspec import Struct

from analytics.records import Discreet
from connectors.connector import Json, Misconfigured, ProviderUnavailable, SourceError, UserActionRequired
from connectors.sources.fints.bank_line import BankLine, PagesWithoutEnd
from connectors.sources.fints.library import (
    allowed_operations,
    answer_next_order,
    client_on,
    dialog_to_end,
    joined,
    mt940_pieces,
)

UNKNOWN_PRODUCT = "9078"
APPROVAL_NEEDED = "9075"
WAIT_SECONDS = 3.0  # between two checks whether the app has approved, where the bank states no time
WAIT_SECONDS_MAX = 30.0
BOOKINGS = (FinTSOperations.GET_TRANSACTIONS, FinTSOperations.GET_TRANSACTIONS_XML)

log = logging.getLogger("bankdata.fints")


class PinRefused(UserActionRequired):
    """The bank refused the PIN. It is not tried again, for three wrong ones lock the account. Renew the connection."""


class AccessLocked(UserActionRequired):
    """The bank has locked this access. Unlock it at the bank, then renew the connection."""


class ApprovalNeeded(UserActionRequired):
    """The bank wants you to approve this access. Renew the connection on the account page."""

    challenge: Any = None  # the library's challenge, where the bank wants an approval only for an order


class TanRefused(UserActionRequired):
    """The bank did not accept the approval. Begin again."""


class Access(Discreet, frozen=True, kw_only=True):
    """The credentials for a bank. `state` is the library's from the last dialog, None for none: without its system id,
    the bank takes us for a stranger and asks for a TAN. `method` is the way in which the customer approves, and
    `medium` names one of several phones or cards; None: not chosen yet."""

    url: str
    bank_code: str
    login: str
    pin: str
    product: str
    state: str | None = None
    method: str | None = None
    medium: str | None = None


class Challenge(Discreet, frozen=True, kw_only=True):
    """A task for the customer, in the bank's words: approve in the app, or answer with a TAN. `paused` is the saved
    dialog; an approval in the app is checked after `wait` seconds."""

    text: str
    is_in_app: bool
    wait: float
    image: bytes | None
    image_type: str
    paused: Json


class Choice(Struct, frozen=True, kw_only=True):
    """A choice among options (value, name): a `method` of approval, or a `medium` for it."""

    of: str
    options: Sequence[tuple[str, str]]


class ReportedAccount(Struct, frozen=True, kw_only=True):
    """One account as the bank reports it. `booked` and `pending` are documents in camt or MT940, and so are `older`,
    with bookings from earlier days that the bank gave while the account was connected. `refusal` is the bank's code, or
    our words, for why there are no bookings; None where there is no such reason."""

    iban: str | None
    number: str
    kind: int | None
    name: str | None
    currency: str | None
    balance: Decimal | None
    balance_day: date | None
    booked: Sequence[bytes] = ()
    pending: Sequence[bytes] = ()
    older: Sequence[bytes] = ()
    refusal: str | None = None

    @property
    def key(self) -> str:
        """The account's IBAN, else its number."""
        return self.iban or self.number


class OpenDialog(Struct, frozen=True, kw_only=True):
    """An open FinTS dialog that needs no further approval to read accounts."""

    client: Any
    line: BankLine

    @property
    def bank_name(self) -> str:
        """The bank's own name; empty where it states none."""
        return str(self.client.bpa.bank_name or "") if self.client.bpa else ""

    @property
    def state(self) -> str:
        """The state of the library that the next dialog needs."""
        return _text(self.client.deconstruct(including_private=True))

    def accounts(self) -> list[list[str]]:
        """The accounts of the customer at the bank, each in the form that the library takes."""
        with _translate_errors(self.line):
            return [list(each) for each in self._checked_order(self.client.get_sepa_accounts())]

    def read(self, since: Callable[[str], date], until: date) -> Sequence[ReportedAccount]:
        """All accounts in the bank's order, with their booked balances, and their bookings from the day that `since`
        gives for the account's key to `until`."""
        with _translate_errors(self.line):
            accounts = self._checked_order(self.client.get_sepa_accounts())
            about = {each.iban: each for each in self.client.upd.find_segments("HIUPD")}
            return [self._read_account(account, about.get(account.iban), since, until) for account in accounts]

    def older(self, today: date, known: Json) -> tuple[Json, Challenge | None]:
        """Read bookings as far back as the bank keeps them, and until today, so that a first sync some days later
        leaves no gap. `known` has the accounts still "left" and the documents "found" so far, packed, by account.
        Returns both anew, and the challenge where the bank wants an approval first, else None.

        An account whose bookings the bank refuses gets none, and so does one that needs another approval halfway,
        because a part would leave a gap.
        """
        found, left = dict(known["found"]), list(known["left"])
        stated = self.client.bpd.find_segment_first("HICAZS")
        since = today - timedelta(days=int(stated.parameter.storage_duration)) if stated else None
        while left:
            account = SEPAAccount(*left[0])
            booked: Sequence[bytes] = ()
            try:
                with _translate_errors(self.line):
                    booked, _ = self._bookings(account, since, today)
            except ApprovalNeeded as wanted:
                if wanted.challenge is not None and not self.line.pages:
                    return {"found": found, "left": left}, _put_aside(self.client, wanted.challenge)
            except ProviderUnavailable:
                pass  # nothing is lost: these bookings have never been there
            found[_key(account)] = [_text(zlib.compress(each)) for each in booked]
            del left[0]
        return {"found": found, "left": left}, None

    def _read_account(self, account: Any, about: Any, since: Callable[[str], date], until: date) -> ReportedAccount:
        may = allowed_operations(about)  # some banks do not state which orders an account allows
        balance, refusal = None, None
        booked: Sequence[bytes] = ()
        pending: Sequence[bytes] = ()
        iban, number = account.iban or None, _number(account)
        try:
            if FinTSOperations.GET_BALANCE in may or not may:
                balance = self._checked_order(self.client.get_balance(account))
            if may.intersection(BOOKINGS) or not may:
                booked, pending = self._bookings(account, since(_key(account)), until)
        except FinTSUnsupportedOperation:
            refusal = "not offered"
        except PagesWithoutEnd:
            refusal = "pages without end"
        except _OrderRefused as error:
            refusal = error.code
        return ReportedAccount(
            iban=iban,
            number=number,
            kind=int(about.account_type) if about and about.account_type is not None else None,
            name=about.account_product_name if about else None,
            currency=(about.account_currency if about else None) or (balance.amount.currency if balance else None),
            balance=balance.amount.amount if balance else None,
            balance_day=balance.date if balance else None,
            booked=booked,
            pending=pending,
            refusal=refusal,
        )

    def _bookings(self, account: Any, since: date | None, until: date) -> tuple[Sequence[bytes], Sequence[bytes]]:
        """The documents of booked and of pending transactions: camt, or MT940 where the bank offers nothing else."""
        self.line.pages.clear()
        if self.client.bpd.find_segment_first("HICAZS"):
            booked, pending = self._checked_order(self.client.get_transactions_xml(account, since, until))
            return list(filter(None, booked)), list(filter(None, pending))
        parts = self._checked_order(mt940_pieces(self.client, account, since, until))
        return joined(each.statement_booked for each in parts), joined(each.statement_pending for each in parts)

    def _checked_order(self, result: Any) -> Any:
        """The result of an order. Raises ApprovalNeeded and _OrderRefused; the library returns an empty result for an
        order that the bank refused, so the codes decide."""
        if isinstance(result, NeedTANResponse) or APPROVAL_NEEDED in self.line.codes:
            wanted = ApprovalNeeded()
            wanted.challenge = result if isinstance(result, NeedTANResponse) else None
            raise wanted
        if self.line.refusal is not None:
            raise _OrderRefused(self.line.refusal)
        return result


@contextmanager
def open_dialog(access: Access) -> Iterator[OpenDialog | Challenge | Choice]:
    """A dialog that is open until the block ends; or what the customer has to do or choose first. Raises
    SourceError."""
    with closing(BankLine(access.url)) as line:
        client = _client(access, line)
        with _translate_errors(line):
            choice = _prepare(client, access)
        if choice is not None:
            yield choice
            return
        with _translate_errors(line):
            client.__enter__()
        try:
            challenge = client.init_tan_response
            if isinstance(challenge, NeedTANResponse):
                yield _put_aside(client, challenge)
            else:
                _check_begun(line)
                yield OpenDialog(client=client, line=line)
        finally:
            _close(client, line)


@contextmanager
def resume_dialog(
    access: Access, paused: Json, tan: str, *, of_order: bool = False
) -> Iterator[OpenDialog | Challenge]:
    """The saved dialog, continued with what the customer entered as TAN: open now, or still waiting. With `of_order`,
    the approval is for an order: the dialog is open, `tan` is sent in place of the next order, and that returns the
    result of the order that waited."""
    with closing(BankLine(access.url)) as line:
        client = _client(access, line, state=paused["state"])
        challenge = NeedRetryResponse.from_data(_bytes(paused["challenge"]))
        challenge.decoupled = paused["is_in_app"]  # the library does not restore it
        resuming = client.resume_dialog(_bytes(paused["dialog"]))
        with _translate_errors(line):
            resuming.__enter__()
        try:
            if of_order:
                answer_next_order(client, challenge, tan)
                yield OpenDialog(client=client, line=line)
                return
            with _translate_errors(line):
                outcome = client.send_tan(challenge, tan)
            if isinstance(outcome, NeedTANResponse):
                yield _put_aside(client, outcome)
            else:
                if any(code.startswith("9") for code in line.codes):
                    raise TanRefused(detail=" ".join(line.codes))
                yield OpenDialog(client=client, line=line)
        finally:
            _close(client, line)


class _OrderRefused(Exception):
    """The bank refused an order."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def _client(access: Access, line: BankLine, state: str | None = None) -> Any:
    kept = state or access.state
    credentials = access.bank_code, access.login, access.pin, access.url
    return client_on(line, *credentials, product=access.product, state=_bytes(kept) if kept else None)


def _prepare(client: Any, access: Access) -> Choice | None:
    """Prepare the client for the customer's method of approval; returns the choice where there are several."""
    if not client.get_current_tan_mechanism() or not client.get_tan_mechanisms():
        client.fetch_tan_mechanisms()
        _check_begun(client.connection)
        ways = client.get_tan_mechanisms()
        if access.method is not None and access.method in ways:
            client.set_tan_mechanism(access.method)
        elif len(ways) > 1:
            return Choice(of="method", options=[(name, str(way.name)) for name, way in ways.items()])
    if client.selected_tan_medium is None and client.get_tan_mechanisms() and client.is_tan_media_required():
        if access.medium is not None:
            client.selected_tan_medium = access.medium
            return None
        _, media = client.get_tan_media()
        names = [str(each.tan_medium_name) for each in media or ()]
        if len(names) > 1:
            return Choice(of="medium", options=[(name, name) for name in names])
        client.selected_tan_medium = names[0] if names else ""
    return None


def _put_aside(client: Any, challenge: Any) -> Challenge:
    """The challenge, with the dialog that waits for its answer saved as text."""
    way = client.get_tan_mechanisms().get(client.get_current_tan_mechanism())
    wait = getattr(way, "wait_before_next_poll", None) or WAIT_SECONDS
    image_type, image = challenge.challenge_matrix or ("", None)
    paused = {
        "dialog": _text(client.pause_dialog()),
        "state": _text(client.deconstruct(including_private=True)),
        "challenge": _text(challenge.get_data()),
        "is_in_app": bool(challenge.decoupled),
    }
    return Challenge(
        text=str(challenge.challenge or ""),
        is_in_app=bool(challenge.decoupled),
        wait=min(max(1.0, float(wait)), WAIT_SECONDS_MAX),
        image=image,
        image_type=image_type,
        paused=paused,
    )


def _check_begun(line: BankLine) -> None:
    """Raise an error if the bank refused to begin the dialog."""
    if UNKNOWN_PRODUCT in line.codes:
        raise Misconfigured("The bank does not know the FinTS product id. Ask for one and set BANKDATA_FINTS_PRODUCT.")
    if any(code.startswith("9") for code in line.codes):
        raise ProviderUnavailable("The bank refused the dialog.", detail=" ".join(line.codes))


def _close(client: Any, line: BankLine) -> None:
    """End the dialog at the bank, unless it was saved for later. A failure to end it is logged and does not matter."""
    dialog = dialog_to_end(client)
    if dialog is not None:
        try:
            with _translate_errors(line):
                dialog.end()
        except SourceError as error:
            log.info("a dialog could not be ended: %s %s", type(error).__name__, error.detail)
            line.codes = ()


@contextmanager
def _translate_errors(line: BankLine) -> Iterator[None]:
    """Translate exceptions of python-fints into SourceErrors; the library wraps our own errors, and raises any
    exception."""
    try:
        yield
    except SourceError:
        raise
    except FinTSClientPINError:
        raise PinRefused(detail=" ".join(line.codes)) from None
    except FinTSClientTemporaryAuthError:
        raise AccessLocked(detail=" ".join(line.codes)) from None
    except Exception as error:
        if isinstance(error.__cause__, SourceError):
            raise error.__cause__ from None
        if APPROVAL_NEEDED in line.codes:
            raise ApprovalNeeded(detail=" ".join(line.codes)) from None
        if line.refusal is not None:
            raise ProviderUnavailable(
                "The bank refused an order (FinTS code {refusal}).", refusal=line.refusal, detail=" ".join(line.codes)
            ) from None
        raise ProviderUnavailable("The bank sent a damaged answer.", detail=type(error).__name__) from None


def unpack(text: str) -> bytes:
    """The document that `OpenDialog.older` has packed into this text."""
    return zlib.decompress(_bytes(text))


def _number(account: Any) -> str:
    return f"{account.blz}/{account.accountnumber}"


def _key(account: Any) -> str:
    """The account's IBAN, else bank code and number, as in `ReportedAccount.key`."""
    return account.iban or _number(account)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)
