"""A dialog with a FinTS bank: opened, approved by its customer where the bank wants that, read, and closed.

While the customer approves, nothing of a dialog stays in this process: it is put aside as text, the PIN in it, and
goes on from there. Whoever keeps that text has to encrypt it, and nobody else may write it: it is a pickle.
"""

import base64
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from fints.client import FinTS3PinTanClient, FinTSOperations, NeedRetryResponse, NeedTANResponse
from fints.exceptions import (
    FinTSClientPINError,
    FinTSClientTemporaryAuthError,
    FinTSUnsupportedOperation,
)
from fints.models import SEPAAccount
from fints.segments.statement import HKKAZ5, HKKAZ6, HKKAZ7

from connectors.connector import Json, Misconfigured, ProviderUnavailable, SourceError, UserActionRequired
from connectors.sources.fints.bank_line import BankLine, PagesWithoutEnd

UNKNOWN_PRODUCT = "9078"
APPROVAL_NEEDED = "9075"
WAIT_SECONDS = 3.0  # between two looks whether the app has approved, where the bank names nothing
WAIT_SECONDS_MAX = 30.0
BOOKINGS = (FinTSOperations.GET_TRANSACTIONS, FinTSOperations.GET_TRANSACTIONS_XML)


class PinRefused(UserActionRequired):
    """The bank refused the PIN. It is not tried again, for three wrong ones lock the account. Renew the connection."""


class AccessLocked(UserActionRequired):
    """The bank has locked this access. Unlock it at the bank, then renew the connection."""


class ApprovalNeeded(UserActionRequired):
    """The bank wants you to approve this access. Renew the connection on the account page."""

    challenge: Any = None  # the library's, where the bank wants it for an order alone


class TanRefused(UserActionRequired):
    """The bank did not accept the approval. Begin again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What opens a bank. `state` is what the library wants back from the last dialog: without its system id the bank
    takes us for a stranger and asks for a TAN. `medium` names one of several phones or cards."""

    url: str
    bank_code: str
    login: str
    pin: str
    product: str
    state: str | None = None
    method: str | None = None
    medium: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """What the customer has to do, in the bank's words: approve in the app, or answer with a TAN. `paused` is the
    dialog that waits for it; in the app it is asked for after `wait` seconds."""

    text: str
    is_in_app: bool
    wait: float
    image: bytes | None
    image_type: str
    paused: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which of these (value, name): a `method` of approval, or a `medium` for it."""

    of: str
    options: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One account as the bank tells it: `booked` and `pending` are documents, camt or MT940. `refusal` is the bank's
    code where it gives no bookings."""

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
        """What the bank knows the account by."""
        return self.iban or self.number


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDialog:
    """An open and approved dialog."""

    client: Any
    line: BankLine

    @property
    def bank_name(self) -> str:
        """What the bank calls itself; empty if it does not."""
        return str(self.client.get_information()["bank"].get("name") or "")

    @property
    def state(self) -> str:
        """What the next dialog needs of this one."""
        return _text(self.client.deconstruct(including_private=True))

    def accounts(self) -> list[list[str]]:
        """Those that the customer has there, each as the library wants it back."""
        with _spoken(self.line):
            return [list(each) for each in self._ordered(self.client.get_sepa_accounts())]

    def read(self, since: Callable[[str], date], until: date) -> Sequence[Told]:
        """Every account with its booked balance and its bookings, from the day on that `since` names for its key, in
        the bank's order."""
        with _spoken(self.line):
            accounts = self._ordered(self.client.get_sepa_accounts())
            about = {each["iban"]: each for each in self.client.get_information()["accounts"]}
            return [self._told(account, about.get(account.iban) or {}, since, until) for account in accounts]

    def older(self, today: date, known: Json) -> tuple[Json, Challenge | None]:
        """The bookings of the accounts that are "left", for as long as the bank keeps them and until today, so that
        a first sync some days later leaves no gap, beside those "found" of others as packed documents; and what the
        customer has to do first, where the bank wants an approval for one of them. An account of which it gives none
        has none, nor has one of which it wants another approval in between: a part would have a gap behind it."""
        found, left = dict(known["found"]), list(known["left"])
        stated = self.client.bpd.find_segment_first("HICAZS")
        since = today - timedelta(days=int(stated.parameter.storage_duration)) if stated else None
        while left:
            account = SEPAAccount(*left[0])
            booked: Sequence[bytes] = ()
            try:
                with _spoken(self.line):
                    booked, _ = self._bookings(account, since, today)
            except ApprovalNeeded as wanted:
                if wanted.challenge is not None and not self.line.pages:
                    return {"found": found, "left": left}, _put_aside(self.client, wanted.challenge)
            except ProviderUnavailable:
                pass  # nobody misses what nobody had
            found[_key(account)] = [_text(zlib.compress(each)) for each in booked]
            del left[0]
        return {"found": found, "left": left}, None

    def _told(self, account: Any, about: Mapping[str, Any], since: Callable[[str], date], until: date) -> Told:
        may = about.get("supported_operations") or {}
        is_told = any(may.values())  # some banks leave out what an account may be asked
        balance, refusal = None, None
        booked: Sequence[bytes] = ()
        pending: Sequence[bytes] = ()
        iban, number = account.iban or None, _number(account)
        try:
            if may.get(FinTSOperations.GET_BALANCE) or not is_told:
                balance = self._ordered(self.client.get_balance(account))
            if any(may.get(each) for each in BOOKINGS) or not is_told:
                booked, pending = self._bookings(account, since(_key(account)), until)
        except FinTSUnsupportedOperation:
            refusal = "not offered"
        except PagesWithoutEnd:
            refusal = "pages without end"
        except _OrderRefused as error:
            refusal = error.code
        return Told(
            iban=iban,
            number=number,
            kind=int(about["type"]) if about.get("type") is not None else None,
            name=about.get("product_name"),
            currency=about.get("currency") or (balance.amount.currency if balance else None),
            balance=balance.amount.amount if balance else None,
            balance_day=balance.date if balance else None,
            booked=booked,
            pending=pending,
            refusal=refusal,
        )

    def _bookings(self, account: Any, since: date | None, until: date) -> tuple[Sequence[bytes], Sequence[bytes]]:
        """Documents of what is booked and of what is pending: camt, and MT940 where the bank has nothing else."""
        self.line.pages.clear()
        if self.client.bpd.find_segment_first("HICAZS"):
            booked, pending = self._ordered(self.client.get_transactions_xml(account, since, until))
            return list(filter(None, booked)), list(filter(None, pending))
        parts = self._ordered(self._mt940(account, since, until))
        return _joined(each.statement_booked for each in parts), _joined(each.statement_pending for each in parts)

    def _mt940(self, account: Any, since: date | None, until: date) -> Any:
        """The pieces as the bank sent them. The library only hands out what its own reader made of them."""
        with self.client._get_dialog() as dialog:
            order = self.client._find_highest_supported_command(HKKAZ5, HKKAZ6, HKKAZ7)
            return self.client._fetch_with_touchdowns(
                dialog,
                lambda page: order(
                    account=order._fields["account"].type.from_sepa_account(account),
                    all_accounts=False,
                    date_start=since,
                    date_end=until,
                    touchdown_point=page,
                ),
                list,
                "HIKAZ",
            )

    def _ordered(self, result: Any) -> Any:
        """The result of an order; the library gives an empty one for what the bank refused, so its codes decide."""
        if isinstance(result, NeedTANResponse) or APPROVAL_NEEDED in self.line.codes:
            wanted = ApprovalNeeded()
            wanted.challenge = result if isinstance(result, NeedTANResponse) else None
            raise wanted
        if self.line.refusal is not None:
            raise _OrderRefused(self.line.refusal)
        return result


@contextmanager
def open_dialog(access: Access) -> Iterator[OpenDialog | Challenge | Choice]:
    """A dialog, until the block ends; or what the customer has to do or to say first. Raises SourceError."""
    with closing(BankLine(access.url)) as line:
        client = _client(access, line)
        with _spoken(line):
            choice = _prepared(client, access)
        if choice is not None:
            yield choice
            return
        with _spoken(line):
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
    """The dialog that was put aside, with the TAN if there is one to type: open now, or waiting still. With `of_order`
    the approval is for an order: it takes the place of the next one that is given."""
    with closing(BankLine(access.url)) as line:
        client = _client(access, line, state=paused["state"])
        challenge = NeedRetryResponse.from_data(_bytes(paused["challenge"]))
        challenge.decoupled = paused["is_in_app"]  # the library forgets it
        resuming = client.resume_dialog(_bytes(paused["dialog"]))
        with _spoken(line):
            resuming.__enter__()
        try:
            if of_order:
                client._send_with_possible_retry = partial(_approved, client, challenge, tan)
                yield OpenDialog(client=client, line=line)
                return
            with _spoken(line):
                outcome = client.send_tan(challenge, tan)
            if isinstance(outcome, NeedTANResponse):
                yield _put_aside(client, outcome)
            else:
                if any(code.startswith("9") for code in line.codes):
                    raise TanRefused(detail=" ".join(line.codes))
                yield OpenDialog(client=client, line=line)
        finally:
            _close(client, line)


def _approved(client: Any, challenge: Any, tan: str, dialog: Any, order: Any, resume: Any) -> Any:
    """What the order comes to that waited for this approval. One that the bank does not accept is asked for again."""
    del client._send_with_possible_retry
    outcome = client.send_tan(challenge, tan)
    is_refused = client.connection.refusal is not None
    return client._send_with_possible_retry(dialog, order, resume) if is_refused else outcome


class _OrderRefused(Exception):
    """The bank refused an order."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def _client(access: Access, line: BankLine, state: str | None = None) -> Any:
    kept = state or access.state
    client = FinTS3PinTanClient(
        access.bank_code,
        access.login,
        access.pin,
        access.url,
        product_id=access.product,
        from_data=_bytes(kept) if kept else None,
    )
    client.connection.session.close()
    client.connection = line
    return client


def _prepared(client: Any, access: Access) -> Choice | None:
    """Have the client know how its customer approves; the choice where there are several ways."""
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
    """The challenge, with the dialog that waits for its answer as text."""
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
    """A dialog whose beginning the bank refused."""
    if UNKNOWN_PRODUCT in line.codes:
        raise Misconfigured("The bank does not know the FinTS product id. Ask for one and set BANKDATA_FINTS_PRODUCT.")
    if any(code.startswith("9") for code in line.codes):
        raise ProviderUnavailable("The bank refused the dialog.", detail=" ".join(line.codes))


def _close(client: Any, line: BankLine) -> None:
    """End the dialog at the bank, unless it was put aside. That it could not be ended changes nothing."""
    dialog = client._standing_dialog
    if dialog is not None and not dialog.paused and dialog.open:
        try:
            dialog.end()
        except Exception:
            line.codes = ()


@contextmanager
def _spoken(line: BankLine) -> Iterator[None]:
    """What python-fints raises, as what it means. It wraps our own errors, and raises whatever it stumbles over."""
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
                f"The bank refused an order (FinTS code {line.refusal}).", detail=" ".join(line.codes)
            ) from None
        raise ProviderUnavailable("The bank sent a damaged answer.", detail=type(error).__name__) from None


def unpack(text: str) -> bytes:
    """A document of `OpenDialog.older`."""
    return zlib.decompress(_bytes(text))


def _number(account: Any) -> str:
    return f"{account.blz}/{account.accountnumber}"


def _key(account: Any) -> str:
    """What `Told.key` is for it."""
    return account.iban or _number(account)


def _joined(pieces: Iterator[bytes | None]) -> Sequence[bytes]:
    """Banks cut MT940 wherever they like."""
    whole = b"".join(filter(None, pieces))
    return [whole] if whole else []


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)
