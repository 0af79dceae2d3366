"""A forecast in the form that an assistant gets: its last and lowest day, and the payments due, as a table."""

from collections.abc import Sequence
from decimal import Decimal

from handlers.mcp.tool_call import ref_of
from handlers.mcp.untrusted_texts import NamedTexts
from handlers.names import Json

EVENTS_MAX = 30
"""Payments listed per currency; later ones are given as one sum, so that the forecast still adds up."""

COLUMNS = ("date", "amount", "name", "isOverdue")


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
    rows = [[each["date"], each["amount"], names.add(each["name"]), each["isOverdue"]] for each in events[:EVENTS_MAX]]
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
