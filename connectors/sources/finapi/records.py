"""Records from finAPI Access's accounts and bookings.

finAPI's own adjusting entries (`isAdjustingEntry`) are left out, because the store makes its own from balances. So are
the parts of a booking that somebody split (they have a `parentId`), because the bank reported only the booking itself.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from analytics.records import AccountKind, AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.connector import Json, ProviderUnavailable
from connectors.limits import AMOUNT_DIGITS_MAX
from connectors.text import (
    clean,
    clean_key,
    clean_purpose,
    currency_of,
    parse_amount,
    parse_bic,
    parse_creditor_id,
    parse_date,
    parse_iban,
)

TOLD_DAYS = 89  # the period that banks report to finAPI without another approval (PSD2)
KINDS: Mapping[str, AccountKind] = {
    "Checking": "checking", "Savings": "savings", "CreditCard": "credit_card", "Security": "securities",
    "Loan": "loan", "Membership": "membership", "Bausparen": "building_savings",
}  # fmt: skip


def records(
    account: Json,
    booked: Sequence[Json],
    pending: Iterable[Json] | None,
    *,
    bank_name: str,
    is_whole: bool = True,
    is_first: bool = False,
) -> Iterator[Record]:
    """The records of one account: account, bookings in finAPI's order without adjusting entries and parts of split
    ones, pending ones (None: not provided), and booked balance.

    `booked` are the most recent bookings or, the first time (`is_first`), all. The 90 days up to the last update, the
    first time all days since the first booking, are stated as complete, unless the list broke off (not `is_whole`) or
    the day of the update is not known. Raises ProviderUnavailable for an answer that is not as finAPI describes it.
    """
    try:
        own = _account(account, bank_name)
        yield own
        last = _last_update(account)
        told_from = last - timedelta(days=TOLD_DAYS) if last is not None and is_whole else None
        bookings = [each for each in booked if not (each.get("isAdjustingEntry") or each.get("parentId"))]
        counts = Counter(str(each["id"]) for each in bookings)
        for each in bookings:
            record = _booked_record(each, own.currency, counts)
            if is_first and told_from is not None:
                told_from = min(told_from, record.booking_date)
            yield record
        for each in pending or ():
            yield _pending_record(each, own.currency, last)
        yield StatementRecord(
            closing=_amount(account["balance"]) if account.get("balance") is not None else None,
            closing_date=last,
            told_from=told_from,
            told_until=last if told_from is not None else None,
            is_pending_complete=pending is not None,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        detail = f"{type(error).__name__} in a record"
        raise ProviderUnavailable("finAPI sent a damaged answer.", detail=detail) from error


def _account(account: Json, bank_name: str) -> AccountRecord:
    iban = parse_iban(_text(account, "iban"))
    return AccountRecord(
        stable_key=str(account["id"]),
        currency=_text(account, "accountCurrency") or currency_of(iban),
        iban=iban,
        name=clean(_text(account, "accountName")),
        kind=KINDS.get(_text(account, "accountType") or "", "other"),
        bank_name=bank_name,
    )


def _booked_record(booking: Json, currency: str, counts: Mapping[str, int]) -> TransactionRecord:
    """The record of a booking. `counts` counts each id in the answer: an id that several bookings share is not used."""
    id_ = str(booking["id"])
    day = _day(booking, "bankBookingDate") or _day(booking, "finapiBookingDate") or _day(booking, "valueDate")
    return replace(
        _base_record(booking, day, currency, party="counterpart", end_to_end="endToEndReference"),
        provider_id=id_ if counts[id_] == 1 else None,
        bank_text=clean(_text(booking, "type")),
        original_amount=_amount(booking["originalAmount"]) if booking.get("originalAmount") is not None else None,
        original_currency=_text(booking, "originalCurrency"),
        is_potential_duplicate=booking.get("isPotentialDuplicate") is True,
    )


def _pending_record(booking: Json, currency: str, asked_on: date | None) -> TransactionRecord:
    """The record of a pending booking, without an id, because finAPI's changes with every update. One that the bank has
    not dated is of the day on which it was asked."""
    day = _day(booking, "bankBookingDate") or _day(booking, "valueDate") or asked_on
    return replace(
        _base_record(booking, day, currency, party="counterparty", end_to_end="endToEndId"), status="pending"
    )


def _base_record(booking: Json, day: date | None, currency: str, *, party: str, end_to_end: str) -> TransactionRecord:
    """The fields that booked and pending bookings share. `party` is the prefix of the counterpart's fields, and
    `end_to_end` the name of the end-to-end id: both differ between the two kinds."""
    if day is None:
        raise ValueError("a booking without a day")
    return TransactionRecord(
        amount=_amount(booking["amount"]),
        currency=_text(booking, "currency") or currency,
        booking_date=day,
        value_date=_day(booking, "valueDate"),
        counterpart_name=clean(_text(booking, f"{party}Name")),
        counterpart_iban=parse_iban(_text(booking, f"{party}Iban")),
        counterpart_bic=parse_bic(_text(booking, f"{party}Bic")),
        counterpart_bank_name=clean(_text(booking, f"{party}BankName")),
        creditor_id=parse_creditor_id(_text(booking, f"{party}CreditorId")),
        debitor_id=clean_key(_text(booking, f"{party}DebitorId")),
        mandate_reference=clean_key(_text(booking, f"{party}MandateReference")),
        end_to_end_id=clean_key(_text(booking, end_to_end)),
        purpose=clean_purpose(_text(booking, "purpose")),
        bank_transaction_code=clean_key(_text(booking, "bankTransactionCode")),
        purpose_code=clean_key(_text(booking, "sepaPurposeCode")),
        gvc=_gvc(booking),
    )


def _last_update(account: Json) -> date | None:
    """The day of the balance: that of the last successful update on any of the account's interfaces; None without
    one."""
    days = [_day(interface, "lastSuccessfulUpdate") for interface in account.get("interfaces") or ()]
    return max((day for day in days if day), default=None)


def _text(said: Json, field: str) -> str | None:
    value: Any = said.get(field)
    if value is None or isinstance(value, str):
        return value
    raise TypeError(f"{field} is no text")


def _day(said: Json, field: str) -> date | None:
    text = _text(said, field)
    return parse_date(text) if text else None


def _amount(value: Any) -> Decimal:
    """The amount of a JSON number, read as a decimal; banks' amounts have neither an exponent nor a dozen digits."""
    if isinstance(value, bool) or not isinstance(value, Decimal | int):
        raise TypeError("an amount is no number")
    if abs(Decimal(value).adjusted()) > AMOUNT_DIGITS_MAX:  # written out, it would fill the memory
        raise ValueError("an amount without measure")
    return parse_amount(f"{value:f}" if isinstance(value, Decimal) else str(value))


def _gvc(booking: Json) -> str | None:
    code = (_text(booking, "typeCodeZka") or "").strip()
    return code if len(code) == 3 and code.isdigit() else None
