"""POST /corrections/batch: one category for all bookings that match filters, each as if it were chosen for it alone."""

from collections.abc import Mapping
from datetime import date
from typing import Any
from uuid import uuid4

import polars as pl

from analytics.searching.filters import found
from handlers.cache.user_data import Need
from handlers.http.errors import BadRequest, Conflicting
from handlers.http.request import Json, Request
from handlers.operations.categories.own import visible
from handlers.operations.categories.places import chosen
from handlers.operations.reports import money_of
from handlers.operations.searching.filters import Filters
from handlers.operations.words import changed_rows
from handlers.operations.words.said import check_words, meant
from handlers.services import Services
from storage.database import Transaction
from storage.importing import derivation
from storage.words import batches

BOOKINGS_MAX = 10_000
NAMES = {
    "accountIds": "account_ids",
    "category": "category",
    "detailedCategory": "detailed_category",
    "dateFrom": "date_from",
    "dateTo": "date_to",
    "search": "search",
    "amountMin": "amount_min",
    "amountMax": "amount_max",
    "direction": "direction",
    "categories": "categories",
    "types": "types",
    "merchant": "merchant",
    "counterpartIban": "counterpart_iban",
    "words": "words",
    "flag": "flag",
    "tag": "tag",
    "ownCategory": "own_category",
}
"""The filters of GET /transactions/search that choose bookings."""


def correct_some(
    services: Services, request: Request, *, dry_run: bool, include: str | None, body: Mapping[str, Any]
) -> Json:
    """Choose a category for all bookings that match the filter, if they are as many as `expected`. A dry run says how
    many they are, and keeps nothing."""
    caller, now = request.principal, services.clock.now()
    user_id, filters = caller.user_id, _filters(body["filter"])
    check_words(caller, None, filters.tag, filters.own_category)

    def work(session: Transaction) -> Json:
        choice = chosen(body, visible(session, caller) if body.get("ownCategoryId") else {})
        ids = _ids(services, request, session, filters)
        if len(ids) > BOOKINGS_MAX:
            raise BadRequest(f"filter: finds more than {BOOKINGS_MAX} transactions")
        if not dry_run and len(ids) != body["expected"]:
            raise Conflicting(f"expected: {len(ids)} transactions match now")
        batch_id = f"cor_{uuid4().hex}"
        batches.choose(session, user_id, batch_id, ids, choice, now=now)
        changed = derivation.apply_rules(session, user_id, now=now, transaction_ids=ids)
        return {
            "id": batch_id,
            "matching": len(ids),
            "changed": changed.height,
            **changed_rows.shown(session, request, changed, include),
        }

    return services.change(user_id, work, is_dry_run=dry_run)


def _filters(given: Mapping[str, Any]) -> Filters:
    said = {NAMES[name]: value for name, value in given.items() if value not in (None, "")}
    if not said:
        raise BadRequest("filter: must say something; all transactions are never meant")
    for name in ("date_from", "date_to"):
        try:
            said[name] = date.fromisoformat(said[name]) if name in said else None
        except ValueError:
            raise BadRequest(f"filter: {name.replace('_f', 'F').replace('_t', 'T')} must be a day") from None
    return Filters(**{**dict.fromkeys(NAMES.values()), **said, "status": "booked", "counted": False})


def _ids(services: Services, request: Request, session: Transaction, filters: Filters) -> list[str]:
    """The ids of the banks' bookings that match the filter, in the accounts that the caller may read."""
    has_words = (filters.tag, filters.own_category) != (None, None)
    needs = Need.LIST | Need.WORDS if has_words else Need.LIST
    reading = services.reader.read(session, request.principal.user_id, needs)
    selected = filters.selected(reading.accounts, request.principal)
    rows = reading.searched(filters.selection(selected, request.principal)).filter(~pl.col("is_adjusting_entry"))
    wanted = meant(reading, request.principal, filters.tag, filters.own_category)
    if wanted is not None:
        rows = rows.filter(pl.col("id").is_in(wanted))
    currency, rates = money_of(services, reading, selected.accounts, rows)
    chosen = found(rows, filters.query(), selection=selected.ids, currency=currency, rates=rates, parts=reading.parts)
    ids: list[str] = chosen.select("id").collect(engine="in-memory")["id"].to_list()
    return ids
