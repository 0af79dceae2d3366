"""What single bookings tell: a first direct debit, a charge that came twice, a payment that came back."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from analytics.frames import CHARGES, columns
from analytics.letters import fold
from analytics.notices.found import Finding

NOTICED = CHARGES | columns(
    "gvc, bank_transaction_code, bank_text, is_reversal, is_return, original_amount, original_currency"
)
"""One row per booked transaction of one user (notices)."""

LOOKED_AT = timedelta(days=60)  # what is older was lived with
KNOWN_FOR = timedelta(days=36 * 30.44)  # how long ago a payee may have collected to be known
ACCOUNT_KNOWN = timedelta(days=60)
RETURNABLE = timedelta(days=56)  # PSD2, articles 76 and 77
WORTH_LOOKING = timedelta(days=14)  # left of it
RECENT = timedelta(days=10)
TILL_GVCS = {"106", "107", "110", "111"}  # by card at a till, ELV
COMPANY_GVCS = {"004", "104", "197"}
COMPANY_CODE = "PMNT-RDDT-BBDD"
RETURN_GVCS = {"159", "181", "184"}
MANDATE_LETTERS = 5  # of shorter references two creditors may have the same
RETURN_CODES = ("-RRTN", "-UPDD")
BY_THE_PERSON = re.compile(r"\bMD0[16]\b")
STORNO = re.compile(
    r"\b(?:storn\w*|r(?:ü|ue)ck(?:lastschrift|buchung|überweisung|ueberweisung)|retoure)\b", re.IGNORECASE
)
TILL = re.compile(r"\b(?:elv|girocard|ec[- ]cash|karte\w* ?\d|pos)\b", re.IGNORECASE)
CASH = re.compile(r"\b(?:geldautomat|bargeld|auszahlung|gaa\b|ga nr|atm\b)", re.IGNORECASE)  # whatever its code says
WORD = re.compile(r"[^\W\d_]{2,}")
PAIR = timedelta(days=2)
YEAR = timedelta(days=365)
DOUBLE_MIN, CHARGES_MIN = Decimal(10), 4
CAME_BACK = timedelta(days=60)
SEPA = "AD AT BE BG CH CY CZ DE DK EE ES FI FR GB GI GR HR HU IE IS IT LI LT LU LV MC MT NL NO PL PT RO SE SI SK SM VA"


class NoticedBooking(NamedTuple):
    """A row of NOTICED with the names by which its payee is known again."""

    id: str
    account_id: str
    day: date
    amount: Decimal
    currency: str
    type: str | None
    name: str
    payee: str
    creditor_id: str | None
    mandate: str | None
    words: str
    gvc: str | None
    code: str
    is_back: bool
    is_doubtful: bool
    is_own: bool

    @property
    def is_direct_debit(self) -> bool:
        """Whether money was collected by a mandate, and not at a till."""
        collected = self.type == "direct_debit" or bool(self.mandate or self.creditor_id)
        return collected and self.type != "card_payment" and self.gvc not in TILL_GVCS

    @property
    def names(self) -> set[str]:
        """By what its payee is known again."""
        return names_of(self.creditor_id, self.mandate, self.payee)


def bookings_of(rows: Iterable[Mapping[str, Any]]) -> list[NoticedBooking]:
    """The rows (NOTICED) as bookings, by day and id; adjusting entries are left out."""
    return sorted(
        (_booking(row) for row in rows if not row["is_adjusting_entry"]), key=lambda each: (each.day, each.id)
    )


def _booking(row: Mapping[str, Any]) -> NoticedBooking:
    name = str(row["merchant_name"] or row["counterpart_name"] or row["purpose"] or "")
    words = f"{row['purpose'] or ''} {row['bank_text'] or ''}"
    code = str(row["bank_transaction_code"] or "")
    back = bool(row["is_return"]) or row["gvc"] in RETURN_GVCS or any(each in code for each in RETURN_CODES)
    return NoticedBooking(
        id=row["id"],
        account_id=row["account_id"],
        day=row["booking_date"],
        amount=row["amount"],
        currency=row["currency"],
        type=row["type"],
        name=name,
        payee=payee_of(name),
        creditor_id=row["creditor_id"],
        mandate=row["mandate_reference"],
        words=words,
        gvc=row["gvc"],
        code=code,
        is_back=back or bool(row["is_reversal"]) or STORNO.search(words) is not None,
        is_doubtful=bool(row["is_potential_duplicate"]),
        is_own=row["transfer_account_id"] is not None,
    )


def new_debits(
    bookings: Sequence[NoticedBooking],
    *,
    today: date,
    seen: Mapping[str, date],
    first: Mapping[str, date],
    ibans: Mapping[str, str | None],
) -> Iterator[Finding]:
    """The direct debits of the last 60 days whose mandate, creditor id and payee had none in 36 months; `seen` has the
    last day of each of their names (`NoticedBooking.names`) before these bookings, `first` the first day of each
    account, `ibans` its IBAN. A debit that came back is none."""
    last_seen = dict(seen)
    returned = _returned(bookings)
    for each in bookings:
        if not each.is_direct_debit or each.amount >= 0 or each.is_back:
            continue
        last = max((last_seen[name] for name in each.names if name in last_seen), default=None)
        last_seen.update(dict.fromkeys(each.names, each.day))
        is_new = last is None or last < each.day - KNOWN_FOR
        is_recent = today - LOOKED_AT <= each.day <= today
        is_account_known = each.account_id in first and first[each.account_id] <= each.day - ACCOUNT_KNOWN
        if is_new and is_recent and is_account_known and not _is_left_out(each) and each.id not in returned:
            yield _new_debit(each, today, ibans[each.account_id])


def names_of(creditor_id: str | None, mandate: str | None, payee: str) -> set[str]:
    """By what a payee is known again: creditor id, mandate, and name (`payee_of`)."""
    reference = mandate if mandate is not None and len(mandate) >= MANDATE_LETTERS else ""
    known = ("creditor", (creditor_id or "").upper()), ("mandate", reference), ("payee", payee)
    return {f"{what} {name}" for what, name in known if name}


@lru_cache(maxsize=4096)  # a few hundred names come again and again
def payee_of(name: str) -> str:
    """A payee's name as names are compared: its first two words without digits, else all of it."""
    text = fold(name)
    return " ".join(WORD.findall(text)[:2]) or text.strip()


def _is_left_out(each: NoticedBooking) -> bool:
    return each.is_doubtful or each.is_own or TILL.search(each.words) is not None


def _new_debit(each: NoticedBooking, today: date, iban: str | None) -> Finding:
    is_company = each.gvc in COMPANY_GVCS or each.code == COMPANY_CODE
    has_right = (
        each.currency == "EUR"
        and bool(iban)
        and str(iban)[:2] in SEPA.split()
        and bool(each.creditor_id or each.mandate)
    )
    until = each.day + RETURNABLE if has_right and not is_company else None
    has_code = bool(each.code or each.gvc)
    message = (
        "company"
        if has_right and is_company
        else "unknown"
        if not has_right
        else "returnable"
        if has_code
        else "perhaps"
    )
    is_urgent = each.day >= today - RECENT or (until is not None and until >= today + WORTH_LOOKING)
    return Finding(
        kind="debit.new",
        subject="\n".join(sorted(name.partition(" ")[2] for name in each.names)) or str(each.mandate),
        day=each.day,
        within=KNOWN_FOR.days,
        message=f"debit.new.{message}",
        arguments={"name": each.name, "amount": _said(-each.amount, each.currency), **_day("until", until)},
        interrupts=is_urgent,
        cause_day=each.day,
        ends_on=until or each.day + LOOKED_AT,
        account_ids=[each.account_id],
        transaction_ids=[each.id],
        amount=-each.amount,
        currency=each.currency,
        returnable_until=until,
    )


def double_charges(bookings: Sequence[NoticedBooking], *, today: date, fixed: Collection[str]) -> Iterator[Finding]:
    """The pairs of equal charges of the last 60 days, at most two days apart, at payees that charge often and never did
    that within a year; or of which one belongs to a recurring payment of one price (`fixed` has the ids of their
    charges)."""
    charges = [each for each in bookings if each.amount < 0 and (each.type == "card_payment" or each.is_direct_debit)]
    by_payee: defaultdict[tuple[str, str], list[NoticedBooking]] = defaultdict(list)
    for each in charges:
        if each.payee and not each.is_own and not each.is_back and not CASH.search(each.words):
            by_payee[each.account_id, each.payee].append(each)
    back = _returned(bookings)
    for of_payee in by_payee.values():
        pairs = _pairs(of_payee)
        for one, other in pairs:
            if not (today - LOOKED_AT <= other.day <= today) or one.is_doubtful or other.is_doubtful:
                continue
            before = [each for each in of_payee if other.day - YEAR <= each.day < one.day]
            earlier = [pair for pair in pairs if other.day - YEAR <= pair[0].day < one.day]
            is_unusual = len(before) >= CHARGES_MIN and not earlier
            is_fixed = (one.id in fixed or other.id in fixed) and not earlier
            if (is_unusual or is_fixed) and -one.amount >= DOUBLE_MIN and not {one.id, other.id} & back:
                yield _double(one, other)


def suspects(bookings: Sequence[NoticedBooking], *, today: date) -> list[str]:
    """The names, as banks wrote them, of payees with a pair of equal charges in the last 60 days: whether that is
    unusual, a year of their charges shows."""
    charges = [each for each in bookings if each.amount <= -DOUBLE_MIN and each.day >= today - LOOKED_AT]
    return sorted({each.name for pair in _pairs(charges) for each in pair})


def _pairs(of_payee: Sequence[NoticedBooking]) -> list[tuple[NoticedBooking, NoticedBooking]]:
    """Equal charges of one payee to one account, at most two days apart, each with the one before it."""
    found, last = [], dict[tuple[str, Decimal, str, str | None], NoticedBooking]()
    for each in of_payee:
        key = f"{each.account_id} {each.payee}", each.amount, each.currency, each.mandate
        before = last.get(key)
        if before is not None and each.day - before.day <= PAIR:
            found.append((before, each))
        last[key] = each
    return found


def _double(one: NoticedBooking, other: NoticedBooking) -> Finding:
    return Finding(
        kind="charge.double",
        subject=f"{one.account_id}|{one.payee}|{one.amount}|{one.currency}",
        day=other.day,
        within=PAIR.days,
        message="charge.double",
        arguments={
            "name": one.name,
            "amount": _said(-one.amount, one.currency),
            **_day("first", one.day),
            **_day("second", other.day),
        },
        cause_day=other.day,
        ends_on=other.day + LOOKED_AT,
        account_ids=[one.account_id],
        transaction_ids=[one.id, other.id],
        amount=-one.amount,
        currency=one.currency,
    )


def failed_payments(bookings: Sequence[NoticedBooking], *, today: date) -> Iterator[Finding]:
    """The payments of the person that came back in the last 60 days, unless the person had them returned, or they were
    paid since."""
    for each in bookings:
        if each.amount <= 0 or not each.is_back or each.is_doubtful or each.is_own or each.day < today - LOOKED_AT:
            continue
        if each.day > today or BY_THE_PERSON.search(each.words):
            continue
        original = _original(each, bookings)
        is_told = each.gvc in RETURN_GVCS or any(code in each.code for code in RETURN_CODES)
        if original is None and not is_told:
            continue  # a refund, or a storno of what is not there
        if not any(_is_paid_again(each, later) for later in bookings):
            yield _failed(each, original)


def _original(each: NoticedBooking, bookings: Sequence[NoticedBooking]) -> NoticedBooking | None:
    """The latest payment that came back by this booking."""
    fits = [
        one
        for one in bookings
        if one.amount == -each.amount
        and (one.account_id, one.currency) == (each.account_id, each.currency)
        and each.day - CAME_BACK <= one.day <= each.day
        and one.type != "card_payment"
        and (one.payee == each.payee or bool(one.mandate and one.mandate == each.mandate))
    ]
    return fits[-1] if fits else None


def _is_paid_again(each: NoticedBooking, later: NoticedBooking) -> bool:
    is_same = later.payee == each.payee and later.currency == each.currency and not later.is_back
    return is_same and later.day > each.day and later.amount <= -each.amount


def _failed(each: NoticedBooking, original: NoticedBooking | None) -> Finding:
    return Finding(
        kind="payment.failed",
        subject=f"{each.account_id}|{each.payee}|{each.amount}|{each.currency}",
        day=each.day,
        within=1,
        message="payment.failed",
        arguments={"name": each.name, "amount": _said(each.amount, each.currency), **_day("day", each.day)},
        cause_day=each.day,
        ends_on=each.day + timedelta(days=30),
        account_ids=[each.account_id],
        transaction_ids=[each.id, *([original.id] if original is not None else [])],
        amount=each.amount,
        currency=each.currency,
    )


def _returned(bookings: Sequence[NoticedBooking]) -> set[str]:
    """The ids of charges after which the same money came from the same payee, or back from the bank."""
    open_: defaultdict[tuple[str, str, Decimal], list[NoticedBooking]] = defaultdict(list)
    returned: set[str] = set()
    for each in bookings:
        key = each.account_id, each.currency, abs(each.amount)
        if each.amount < 0:
            open_[key].append(each)
            continue
        for one in reversed(open_[key]):
            if each.day - one.day <= CAME_BACK and (one.payee == each.payee or each.is_back):
                returned.add(one.id)
                open_[key].remove(one)
                break
    return returned


def _said(amount: Decimal, currency: str) -> str:
    """An amount as arguments have it: plain digits and the currency, written out by whoever says it."""
    return f"{amount.normalize():f} {currency}"


def _day(name: str, day: date | None) -> Mapping[str, str]:
    return {name: day.isoformat()} if day is not None else {}
