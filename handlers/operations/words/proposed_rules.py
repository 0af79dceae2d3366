"""GET /transactions/{id}/rule: proposes a rule for all bookings that are like one."""

from analytics.classification.facts import OF_CASH
from analytics.classification.intermediaries import is_intermediary
from analytics.classification.rules import VALUE_LENGTH_MAX, payee
from handlers.names import Json
from handlers.operations.selection import owner_of, readable_booking
from handlers.web.errors import NotFound
from handlers.web.request import Request
from handlers.work.services import Services
from storage import transactions
from storage.annotations import own_categories
from storage.database import Row
from storage.importing.derivation import CHOSEN

BY_THE_USER = (CHOSEN, "user-rule:", "correction:")  # beginnings of rule names that stand for a person's own words
NAMELESS = "Nothing in this transaction names a counterpart that a rule could be about"


def propose_rule(services: Services, request: Request, *, id: str) -> Json:
    """Propose a rule for bookings like this one, in the form that POST /rules takes: by creditor id, else IBAN, else
    merchant, else name. For an intermediary it is by merchant, else name, since an intermediary carries the payments of
    a thousand shops. The rule gives a finer or own category only where the user has put the booking there; a derived
    finer category follows from the rule's category anyway. Raises NotFound, also if nothing names the counterpart."""
    user_id = owner_of(request)
    with services.of(user_id).transaction() as session:
        row = readable_booking(transactions.find(session, user_id, id), request.principal)
        own = own_categories.of_booking(session, user_id, id)
    place = {"category": row["category"] or "OTHER"}
    if row["detailed_category"] and (row["detailed_rule"] or "").startswith(BY_THE_USER):
        place["detailedCategory"] = row["detailed_category"]
    if own is not None:
        place["ownCategoryId"] = own.id
    for field, value in _compared_fields(row).items():
        if value and value.strip():
            operator = "equals" if len(value) <= VALUE_LENGTH_MAX else "startswith"
            return {"field": field, "operator": operator, "value": value[:VALUE_LENGTH_MAX], **place}
    raise NotFound(NAMELESS)


def _compared_fields(row: Row) -> dict[str, str | None]:
    """The booking's values by the field that a rule would compare, the most reliable first; without creditor id and
    IBAN for an intermediary and for cash."""
    by_name = {"merchantName": payee(row["merchant_name"], row["type"]), "counterpartName": row["counterpart_name"]}
    if row["type"] in OF_CASH or is_intermediary(row["counterpart_name"]):
        return by_name
    by_key = {"counterpartCreditorId": row["creditor_id"], "counterpartIban": row["counterpart_iban"]}
    return {**by_key, **by_name}
