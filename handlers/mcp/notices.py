"""The tool that lists notices; their sentences name payees, so they are strangers' texts."""

from collections.abc import Sequence

from handlers.mcp.tool_call import ToolCall, booking_ref, ref_of
from handlers.mcp.untrusted_texts import DETAIL_LENGTH_MAX, bank_text
from handlers.names import Json

LISTED_MAX = 50
SHOWN = ("kind", "state", "interrupts", "day", "amount", "currency", "dueOn", "returnableUntil", "title", "step")
OPEN_MAX = 200
OF_SOURCES = ("consent.ending", "sync.failing", "ledger.wrong")


async def waiting(call: ToolCall) -> Sequence[Json]:
    """The open notices of consents that end, of connections that bring nothing any more, and of gaps, in short."""
    found = (await call.ask("listNotices", state="open", limit=OPEN_MAX))["notices"]
    return [
        {"title": each["title"], "dueOn": each["dueOn"], "accounts": [ref_of(id_) for id_ in each["accountIds"]]}
        for each in found
        if each["kind"] in OF_SOURCES
    ]


async def list_notices(call: ToolCall, state: str) -> Json:
    """The latest 50 notices in a state, with refs for ids, and what they say as strangers' texts."""
    found = (await call.ask("listNotices", state=state, limit=LISTED_MAX))["notices"]
    return {"today": call.today, "notices": await call.shape(lambda: [_entry(each) for each in found])}


def _entry(notice: Json) -> Json:
    texts, flags = bank_text({"text": notice["text"]}, limit=DETAIL_LENGTH_MAX)
    return {
        **{name: notice[name] for name in SHOWN},
        "accounts": [ref_of(each) for each in notice["accountIds"]],
        "transactions": [booking_ref(each) for each in notice["transactionIds"][:LISTED_MAX]],
        "subscriptionId": notice["subscriptionId"],
        "flags": flags,
        "bank_text": texts,
    }
