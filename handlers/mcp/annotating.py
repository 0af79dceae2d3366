"""annotate_transaction: what an assistant may say of one booking for its person, or of its payee, where the person has
allowed that."""

from collections.abc import Sequence
from typing import Any

from analytics.classification.facts import CATEGORIES
from handlers.mcp.catalogue import WrongArgument
from handlers.mcp.tool_call import ToolCall, booking_ref
from handlers.mcp.untrusted_texts import DETAIL_LENGTH_MAX, bank_text
from handlers.names import Json

CATEGORY = f"category: must be one of {', '.join(CATEGORIES)}, or empty to take it back."
FINER = "category: the person has divided this booking or put it into a finer place, and changes that on the page."
NOTED = "note: there is one already, which the person changes on the page."
QUOTED_MAX = 80  # letters of whom a booking is with, in a question
NO_SUCH_NOTE = "removeNote: must be the whole note as it was written by you."
ONE_OF_TWO = "note: either note or removeNote."
FINER_PAYEE = "category: the person has put this payee into a finer place, and changes that on the page."
CATEGORY_ALONE = "allOfPayee: goes with category alone. Note and tags are of one transaction."


async def annotate_transaction(
    call: ToolCall,
    id: str,
    category: str | None,
    note: str | None,
    removeNote: str | None,
    addTags: Sequence[str] | None,
    removeTags: Sequence[str] | None,
    allOfPayee: bool,
    dryRun: bool,
) -> Json:
    """What the person says of one booking before and after these changes, which are made unless this is a dry run, and
    the arguments that take them back. Words of the person are never replaced: a note is added where there is none, and
    removed by whoever knows it whole. With `allOfPayee` the category is that of its payee, for all bookings and those
    to come. Raises WrongArgument."""
    booking_id = await call.booking_id(id)
    if allOfPayee:
        if category is None or note is not None or removeNote is not None or addTags or removeTags:
            raise WrongArgument(CATEGORY_ALONE)
        return await _correct_payee(call, booking_id, category, is_dry=dryRun)
    row = await call.ask("getTransaction", id=booking_id)
    before = await call.ask("getAnnotation", id=booking_id)
    changes: dict[str, Any] = {}
    undo: dict[str, Any] = {}
    if category is not None:
        changes["category"] = _category(category, before)
        undo["category"] = before["category"] or ""
    if note is not None or removeNote is not None:
        changes["note"] = _note(note, removeNote, before)
        undo |= {"removeNote": note} if note else {"note": removeNote}
    if addTags or removeTags:
        added = [each for each in addTags or () if each not in before["tags"]]
        removed = [each for each in removeTags or () if each in before["tags"]]
        changes["tags"] = [each for each in before["tags"] if each not in removed] + added
        undo |= {"removeTags": added, "addTags": removed}
    after = {**before, **changes}
    is_done = bool(changes) and not dryRun
    if is_done:
        after = await call.ask("changeAnnotation", id=booking_id, body=changes)
    return {
        "today": call.today,
        "ref": booking_ref(booking_id),
        "isDone": is_done,
        "category": row["category"],
        "before": await call.shape(lambda: _said(before)),
        "after": await call.shape(lambda: _said(after)),
        "undo": undo,
    }


async def _correct_payee(call: ToolCall, booking_id: str, category: str, *, is_dry: bool) -> Json:
    row = await call.ask("getTransaction", id=booking_id)
    wanted = _known(category)
    body = {"transactionId": booking_id, "category": wanted or row["category"]}
    tried = await call.ask("createCorrection", dryRun="true", body=body)
    listed = (await call.ask("listCorrections"))["corrections"]
    before: Json = next((each for each in listed if each["id"] == tried["id"]), {})
    if any(before.get(name) for name in ("detailedCategory", "ownCategoryId")):
        raise WrongArgument(FINER_PAYEE)
    is_done = not is_dry and wanted != before.get("category")
    if is_done and wanted is None:
        await call.ask("deleteCorrection", id=tried["id"])
    elif is_done:
        tried = await call.ask("createCorrection", dryRun="false", body=body)
    texts, flags = await call.shape(lambda: bank_text({"payee": tried["name"]}, limit=DETAIL_LENGTH_MAX))
    return {
        "today": call.today,
        "ref": booking_ref(booking_id),
        "isDone": is_done,
        "category": row["category"],
        "before": {"category": before.get("category")},
        "after": {
            "category": wanted,
            "transactions": tried["matching"] if wanted else before.get("matching", 0),
            "flags": flags,
            "bank_text": texts,
        },
        "undo": {"category": before.get("category") or "", "allOfPayee": True},
    }


CONFIRMATION = "confirmation"
"""The key of the question to the person, and of the answer to it."""


async def question(call: ToolCall, arguments: Json) -> Json:
    """The question whether to make these changes, for the person to answer before they are made, as the result of the
    call. Raises WrongArgument for what could not be made."""
    tried = await annotate_transaction(call, **{**arguments, "dryRun": True})
    if arguments["allOfPayee"]:
        about = (
            f"all {tried['after']['transactions']} transactions of {tried['after']['bank_text']['payee']}, and new ones"
        )
        wanted = [_category_in_words(arguments["category"])]
    else:
        row = await call.ask("getTransaction", id=await call.booking_id(arguments["id"]))
        texts, _ = bank_text(
            {"with": row["merchantName"] or row["counterpartName"] or row["purpose"]}, limit=QUOTED_MAX
        )
        day = row["bookingDate"][:10]
        about = f"the transaction of {day}, {row['amount']} {row['currency']}, {texts.get('with', 'no name')}"
        wanted = _in_words(arguments, tried["after"]["bank_text"])
    asked = {
        "mode": "form",
        "message": f"Change {about}: {'; '.join(wanted)}?",
        "requestedSchema": {"type": "object", "properties": {}},
    }
    return {
        "resultType": "input_required",
        "inputRequests": {CONFIRMATION: {"method": "elicitation/create", "params": asked}},
    }


def _in_words(arguments: Json, after: Json) -> list[str]:
    """The changes that these arguments make; `after` are the fenced texts that follow."""
    given = {name for name, value in arguments.items() if value is not None}
    words = [_category_in_words(arguments["category"])] if "category" in given else []
    words += ["note " + after.get("note", "removed")] if {"note", "removeNote"} & given else []
    return words + (["tags " + after.get("tags", "none")] if {"addTags", "removeTags"} & given else [])


def _category_in_words(category: str) -> str:
    return f"category {category or 'as the service finds it'}"


def _known(category: str) -> str | None:
    if category not in ("", *CATEGORIES):
        raise WrongArgument(CATEGORY)
    return category or None


def _category(wanted: str, before: Json) -> str | None:
    known = _known(wanted)
    if any(before.get(name) for name in ("detailedCategory", "ownCategory", "splits", "sleepingSplits")):
        raise WrongArgument(FINER)
    return known


def _note(note: str | None, removed: str | None, before: Json) -> str | None:
    if note is not None and removed is not None:
        raise WrongArgument(ONE_OF_TWO)
    if note is not None and before["note"]:
        raise WrongArgument(NOTED)
    if removed is not None and removed != before["note"]:
        raise WrongArgument(NO_SUCH_NOTE)
    return note or None


def _said(annotation: Json) -> Json:
    """The category that was chosen, and note and tags within the fence, since files may bring them, too."""
    texts, flags = bank_text(
        {"note": annotation["note"], "tags": ", ".join(annotation["tags"])}, limit=DETAIL_LENGTH_MAX
    )
    return {"category": annotation["category"], "flags": flags, "bank_text": texts}
