"""Records from Enable Banking's accounts, balances and bookings, without any requests."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from analytics.records import AccountKind, AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.connector import Json
from connectors.sources.enable_banking.answers import amount, damage, day, members, text, texts
from connectors.text import clean, clean_key, clean_purpose, parse_bic, parse_creditor_id, parse_iban

CLOSING = ("CLBD", "ITBD", "XPCD")  # booked balances, the best first; never CLAV, which includes credit lines
PENDING, LEFT_OUT = ("PDNG", "HOLD"), ("SCHD", "RJCT", "CNCL")
KINDS: Mapping[str | None, AccountKind] = {
    "CACC": "checking",
    "TRAN": "checking",
    "CASH": "checking",
    "SVGS": "savings",
    "CARD": "credit_card",
    "LOAN": "loan",
}
CODE = re.compile("[A-Z]{4}")
MCC = re.compile("[0-9]{4}")
MANDATE, CREDITOR, END_TO_END = (re.compile(rf"\b{mark}\+\s*(\S+)") for mark in ("MREF", "CRED", "EREF"))


def account_facts(account: Json) -> dict[str, str | None]:
    """The facts about an account that are stored when it is connected."""
    return {
        "iban": text(members(account.get("account_id")).get("iban")),
        "name": text(account.get("details")) or text(account.get("name")),
        "product": text(account.get("product")),
        "kind": text(account.get("cash_account_type")),
        "currency": text(account.get("currency")),
        "bic": text(members(account.get("account_servicer")).get("bic_fi")),
    }


def name_of(known: Json) -> str | None:
    """The account's name, or its product, as the bank states it; None where it states neither."""
    return clean(known.get("name")) or clean(known.get("product"))


def currency_of(known: Json, balances: Sequence[Json], rows: Sequence[Json]) -> str:
    """The currency of the account, else of the first amount that has one; empty if none has."""
    amounts = [each.get("balance_amount") for each in balances] + [each.get("transaction_amount") for each in rows]
    currencies = [text(known.get("currency")), *(text(members(each).get("currency")) for each in amounts)]
    return next((each for each in currencies if each), "")


def booking_date(row: Json) -> date | None:
    """The booking date, else the transaction or value date; None for a booking that the bank has not dated."""
    days = (day(row.get(name)) for name in ("booking_date", "transaction_date", "value_date"))
    return next((each for each in days if each), None)


def records(
    known: Json,
    balances: Sequence[Json],
    rows: Sequence[Json],
    *,
    key: str,
    currency: str,
    bank_name: str,
    told_from: date | None,
    today: date,
) -> Iterator[Record]:
    """The records of one account: account, bookings in the bank's order, and booked balance, which is of today unless
    it has a day.

    `rows` are its bookings, complete from the day `told_from` on, if that is not None. Raises ProviderUnavailable for
    an answer that is not as Enable Banking describes it.
    """
    yield AccountRecord(
        stable_key=key,
        currency=currency,
        iban=parse_iban(known.get("iban")),
        name=name_of(known),
        kind=KINDS.get(known.get("kind")),
        bank_name=bank_name,
        bic=parse_bic(known.get("bic")),
    )
    counts = Counter(text(each.get("entry_reference")) for each in rows)
    for each in rows:
        if each.get("status") not in LEFT_OUT:
            yield _booking(each, counts, today)
    closing = _closing(balances, currency)
    yield StatementRecord(
        closing=amount(members(closing.get("balance_amount")).get("amount")) if closing else None,
        closing_date=(day(closing.get("reference_date")) or today) if closing else None,
        told_from=told_from,
        told_until=today if told_from is not None else None,
        is_pending_complete=told_from is not None,
    )


def _closing(balances: Sequence[Json], currency: str) -> Json | None:
    booked = [each for each in balances if members(each.get("balance_amount")).get("currency") == currency]
    return next((each for kind in CLOSING for each in booked if each.get("balance_type") == kind), None)


def _booking(row: Json, counts: Mapping[str | None, int], today: date) -> TransactionRecord:
    """The record of a booking; one that the bank has not dated is a pending one of today. `counts` counts each
    reference in the answer: a reference that several bookings share is not used."""
    is_debit, booked_on = _is_debit(row), booking_date(row)
    paid, role = members(row.get("transaction_amount")), "creditor" if is_debit else "debtor"
    counterpart, agent = members(row.get(role)), members(row.get(f"{role}_agent"))
    code, value = members(row.get("bank_transaction_code")), amount(paid.get("amount"))
    reference, lines = text(row.get("entry_reference")), texts(row.get("remittance_information"))
    joined = " ".join(lines)
    return TransactionRecord(
        amount=-abs(value) if is_debit else value,
        currency=text(paid.get("currency")) or "",
        booking_date=booked_on or today,
        value_date=day(row.get("value_date")),
        status="pending" if booked_on is None or row.get("status") in PENDING else "booked",
        provider_id=clean_key(reference) if counts[reference] == 1 else None,
        counterpart_name=clean(text(counterpart.get("name"))),
        counterpart_iban=parse_iban(text(members(row.get(f"{role}_account")).get("iban"))),
        counterpart_bic=parse_bic(text(agent.get("bic_fi"))),
        counterpart_bank_name=clean(text(agent.get("name"))),
        mandate_reference=clean_key(_first_match(MANDATE, joined)),
        creditor_id=parse_creditor_id(_first_match(CREDITOR, joined)),
        end_to_end_id=clean_key(_first_match(END_TO_END, joined)),
        purpose=clean_purpose(*lines),
        bank_transaction_code=_iso_code(code),
        mcc=_merchant_category(row),
        bank_text=clean(text(code.get("description"))),
    )


def _is_debit(row: Json) -> bool:
    """Whether money leaves the account; amounts have no sign. Raises ProviderUnavailable for a booking without a
    direction."""
    match row.get("credit_debit_indicator"):
        case "DBIT":
            return True
        case "CRDT":
            return False
    raise damage("neither DBIT nor CRDT")


def _iso_code(code: Json) -> str | None:
    """The ISO 20022 code from family and sub-family; the domain is not stated, and bookings on accounts are
    payments."""
    family, below = text(code.get("code")) or "", text(code.get("sub_code")) or ""
    return f"PMNT-{family}-{below}" if CODE.fullmatch(family) and CODE.fullmatch(below) else None


def _merchant_category(row: Json) -> str | None:
    code = text(row.get("merchant_category_code"))
    return code if code and MCC.fullmatch(code) else None


def _first_match(mark: re.Pattern[str], text: str) -> str | None:
    match = mark.search(text)
    return match[1] if match else None
