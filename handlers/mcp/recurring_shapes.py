"""Recurring payments in the form that an assistant gets: without their charges, with strangers' texts fenced."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal

from analytics.minor_digits import in_digits
from handlers.mcp.tool_call import booking_ref, day, ref_of
from handlers.mcp.untrusted_texts import bank_text
from handlers.names import Json

STREAM = ("id", "amount", "currency", "frequency", "intervalMonths", "occurrences", "yearlyCost", "confidence")
BETWEEN = (0.5, 2, 6)  # months, which no frequency says
LATELY = timedelta(days=300)  # so that a yearly one has not begun with the first of two charges
OF_ONE_STREAM = frozenset({"occurrences", "confidence", "comingCharges"})
STREAM_DAYS = ("firstCharged", "lastCharged", "nextExpected")


def stream_of(payment: Json) -> Json:
    """A recurring payment as explain_figure shows it, without history and charges."""
    texts, flags = bank_text({"merchantName": payment["merchantName"]})
    days = {name: day(payment[name]) for name in STREAM_DAYS}
    coming = [day(due) for due in payment["comingCharges"]]
    return {
        **{name: payment[name] for name in STREAM},
        **days,
        "priceChange": payment["priceChange"]
        and {**payment["priceChange"], "since": day(payment["priceChange"]["since"])},
        "comingCharges": coming,
        "flags": flags,
        "bank_text": texts,
    }


def charge_of(charge: Json) -> Json:
    """A charge of a recurring payment, with refs for ids."""
    return {
        "ref": booking_ref(charge["transactionId"]),
        "account": ref_of(charge["accountId"]),
        "bookingDate": day(charge["bookingDate"]),
        **{name: charge[name] for name in ("amount", "isOccurrence")},
    }


def list_entry(payment: Json, *, is_short: bool) -> Json:
    """The members of a recurring payment that a list shows, but for those that say nothing: no flags, an interval that
    the frequency says, a status that is active, nothing overdue, the last charge of what goes on, a first one more
    than ten months before it. Account and category are only in a list that `is_short`, as is every first charge;
    explain_figure shows the others."""
    stream = stream_of(payment)
    account_id = payment["charges"][-1]["accountId"] if payment["charges"] else payment["addedTo"]
    stream |= {
        "direction": payment["direction"],
        "status": payment["status"],
        "category": payment["category"],
        "account": ref_of(account_id),
        "overdueSince": day(payment["overdueSince"]),
    }
    says_nothing = {
        "flags": not stream["flags"],
        "intervalMonths": stream["intervalMonths"] not in BETWEEN,
        "direction": payment["direction"] == "outgoing",
        "status": payment["status"] == "active",
        "overdueSince": payment["overdueSince"] is None,
        "account": not is_short,
        "category": not is_short,
        "firstCharged": not is_short and not _is_young(stream),
        "lastCharged": payment["status"] != "ended",
    }
    return {name: value for name, value in stream.items() if name not in OF_ONE_STREAM and not says_nothing.get(name)}


def _is_young(stream: Json) -> bool:
    first, last = (stream[name] and date.fromisoformat(stream[name]) for name in ("firstCharged", "lastCharged"))
    return bool(first and last and last - first <= LATELY)


def sums_of(payments: Sequence[Json]) -> Json:
    """What these payments come to in a year, by currency: `costs` and, where some comes in, `income`."""
    sums: dict[str, dict[str, Decimal]] = {}
    for each in payments:
        of = sums.setdefault("costs" if each["direction"] == "outgoing" else "income", {})
        of[each["currency"]] = of.get(each["currency"], Decimal(0)) + Decimal(each["yearlyCost"])
    return {name: {currency: in_digits(year, currency) for currency, year in of.items()} for name, of in sums.items()}
