"""GET /transactions/{id}/rule: a rule for whatever is like a booking."""

from analytics.classification.intermediaries import is_intermediary
from analytics.classification.rules import VALUE_LENGTH_MAX
from handlers.http.errors import NotFound
from handlers.http.request import Json, Request
from handlers.operations.selection import owner_of
from handlers.services import Services
from storage import transactions
from storage.database import Row
from storage.importing.derivation import CHOSEN
from storage.words import own_categories

BY_THE_USER = (CHOSEN, "user-rule:", "correction:")  # how the rules begin of what a person has said
NAMELESS = "Nothing in this transaction names a counterpart that a rule could be about"


def propose_rule(services: Services, request: Request, *, id: str) -> Json:
    """A rule as POST /rules takes it: by creditor id, else IBAN, else merchant, else name; an intermediary's by its
    merchant, for it carries the payments of a thousand shops. It gives a finer category or an own one where the user
    has put the booking there: a finer one that was derived is derived below the category of a rule, too."""
    user_id = owner_of(request)
    with services.of(user_id).transaction() as session:
        row = transactions.find(session, user_id, id)
        own = own_categories.of_booking(session, user_id, id)
    if row is None:
        raise NotFound("Transaction not found")
    place = {"category": row["category"] or "OTHER"}
    if row["detailed_category"] and (row["detailed_rule"] or "").startswith(BY_THE_USER):
        place["detailedCategory"] = row["detailed_category"]
    if own is not None:
        place["ownCategoryId"] = own.id
    for field, value in _compared(row).items():
        if value and value.strip():
            operator = "equals" if len(value) <= VALUE_LENGTH_MAX else "startswith"
            return {"field": field, "operator": operator, "value": value[:VALUE_LENGTH_MAX], **place}
    raise NotFound(NAMELESS)


def _compared(row: Row) -> dict[str, str | None]:
    """By field of a rule: what the booking says there, the surest first."""
    by_name = {"merchantName": row["merchant_name"], "counterpartName": row["counterpart_name"]}
    if is_intermediary(row["counterpart_name"]):
        return by_name
    by_key = {"counterpartCreditorId": row["creditor_id"], "counterpartIban": row["counterpart_iban"]}
    return {**by_key, **by_name}
