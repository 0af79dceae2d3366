"""A forecast in the form that an assistant gets: its last and lowest day, and the payments due, as a table."""

from collections.abc import Sequence
from decimal import Decimal

from handlers.mcp.tool_call import ref_of
from handlers.mcp.untrusted_texts import NamedTexts
from handlers.names import Json

EVENTS_MAX = 30
"""Payments listed per currency; later ones are given as one sum, so that the forecast still adds up."""

COLUMNS = ("date", "amount", "name", "account", "isOverdue")
SPENDABLE = ("checking", "credit_card", None)
"""Types of accounts from which a price can be paid; None where its bank does not say what an account is."""


def of_account(found: Json) -> Json:
    """The forecast of one account as an assistant gets it: of the contract's days only the last one's balance, and the
    lowest."""
    return {
        "ref": ref_of(found["accountId"]),
        **{name: found[name] for name in ("currency", "balance", "balanceDate")},
        "expected": found["days"][-1]["expected"],
        "lowest": found["lowest"],
    }


def of_currency(found: Json) -> Json:
    """The forecast of all accounts in one currency together as an assistant gets it: the last day's and the lowest
    balance, and the payments due until then as a table, of which those after the first 30 are summed up."""
    names = NamedTexts("p")
    events: Sequence[Json] = found["events"]
    rows = [_row(each, names) for each in events[:EVENTS_MAX]]
    later = events[EVENTS_MAX:]
    return {
        **{name: found[name] for name in ("currency", "balance", "balanceDate")},
        **{name: found["days"][-1][name] for name in ("expected", "low", "high")},
        "lowest": found["lowest"],
        "restPerDay": found["restPerDay"],
        "events": {"columns": COLUMNS, "rows": rows, "flags": names.flags, "bank_text": names.texts},
        "laterEvents": {"count": len(later), "amount": sum((each["amount"] for each in later), Decimal("0.00"))},
        "accuracy": found["accuracy"],
    }


def afford(price: str | None, forecast: Json, currency: str) -> Json:
    """As `afford`, what is left on the lowest day if this price in this currency is paid now, today counted; nothing
    without a price or a forecast in the currency."""
    found = next((each for each in forecast["currencies"] if each["currency"] == currency), None)
    if price is None or found is None:
        return {}
    lowest, cost = found["lowest"], Decimal(price)
    expected, low = (min(found["balance"], each) - cost for each in (lowest["expected"], lowest["low"]))
    return {
        "afford": {
            "price": cost,
            "currency": currency,
            "date": lowest["date"],
            "expected": expected,
            "low": low,
            "isEnough": expected >= 0,
        }
    }


def _row(event: Json, names: NamedTexts) -> list[object]:
    account_id = event["accountId"]
    return [
        *(event["date"], event["amount"], names.add(event["name"])),
        *(account_id and ref_of(account_id), event["isOverdue"]),
    ]
