"""GET /categories, and the parameters of other operations that concern finer categories."""

import hashlib
from functools import cache

from analytics.classification.facts import LEAVES
from analytics.classification.leaves import OWN_TRANSFER
from auth.principal import Principal
from handlers.languages import LANGUAGES, catalogue
from handlers.names import Json
from handlers.operations.categories.own import own_categories_for
from handlers.operations.categories.own import shape as own_shape
from handlers.operations.selection import listed_values
from handlers.operations.words.row_words import ASKED, DETAILED
from handlers.web import call
from handlers.web.errors import BadRequest
from handlers.web.request import Answer, Request
from handlers.work.services import Services

INCLUDED = (DETAILED, ASKED)
"""The values of `include`, for members that a transaction shows only on request."""
NOBODYS = "-"  # a code that no transaction has
NOT_IN_COICOP = "-"  # of categories that are no consumption: income, taxes, loans, savings


def list_categories(services: Services, request: Request) -> Answer:
    """List the finer categories with their English and German names, and the user's own; 304 for a client that has the
    same list already."""
    with services.of(request.principal.user_id).transaction() as session:
        own = own_categories_for(session, request.principal)
    mine = {"own": [own_shape(each) for each in own.values()]} if own else {}
    body = call.json_bytes({"categories": _shapes(), **mine})
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    if request.knows(etag):
        return Answer(body=b"", status=304, headers={"etag": etag})
    return Answer(body=body, headers={"etag": etag})


def is_included(include: str | None) -> bool:
    """Whether the comma-separated `include` asks for the finer category of transactions; raises BadRequest for unknown
    values."""
    return DETAILED in listed_values("include", include, INCLUDED)


def leaf_filter(code: str | None, caller: Principal) -> str | None:
    """The code of the finer category to filter by, None for no filter, and one that matches nothing if the caller may
    not know which bookings are in it; raises BadRequest for an unknown code."""
    if code is not None and code not in LEAVES:
        raise BadRequest("detailedCategory: must be a code that GET /categories lists")
    return NOBODYS if code is not None and leaf_as_seen(code, caller) is None else code


def leaf_as_seen(code: str | None, caller: Principal) -> str | None:
    """The finer category of a transaction as this caller may see it: None instead of "transfer between own accounts"
    for a caller who may not read all accounts, so that they do not learn of another account of the user."""
    return None if code == OWN_TRANSFER and not caller.is_whole else code


@cache
def _shapes() -> list[Json]:
    return [
        {
            "code": leaf.code,
            "category": leaf.category,
            "name": {language: catalogue(language).texts["category", leaf.code] for language in LANGUAGES},
            "coicop": [] if leaf.coicop == NOT_IN_COICOP else leaf.coicop.split(),
            "merchantCategoryCodes": leaf.mccs.split(),
            "plaid": leaf.plaid,
        }
        for leaf in LEAVES.values()
    ]
