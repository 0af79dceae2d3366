"""POST /corrections/batch: one category for all bookings that match filters, each as if it were chosen for it alone."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import polars as pl

from analytics.frames import frame_of
from analytics.searching.filters import matching_rows
from handlers.names import Json, python_name
from handlers.operations.categories.own import own_categories_for
from handlers.operations.categories.places import place_named
from handlers.operations.reports import money_of
from handlers.operations.searching.filters import Filters
from handlers.operations.selection import selected_or_all
from handlers.operations.words import changed_rows
from handlers.web.errors import BadRequest, Conflicting
from handlers.web.request import Request
from handlers.web.steps.parameters import read_date
from handlers.work.cache.user_data import Need
from handlers.work.services import Services
from storage.annotations import correction_batches
from storage.database import Transaction
from storage.importing import derivation

BOOKINGS_MAX = 10_000


def correct_some(
    services: Services, request: Request, *, dry_run: bool, include: str | None, body: Mapping[str, Any]
) -> Json:
    """Choose a category for all bookings that match the filter, if they are as many as `expected`, else raise
    Conflicting. A dry run says how many they are, and stores nothing. Raises BadRequest for an empty filter or more
    than 10,000 bookings."""
    caller, now = request.principal, services.clock.now()
    user_id, filters = caller.user_id, _filters(body["filter"])
    filters.check(caller)

    def work(session: Transaction) -> Json:
        choice = place_named(body, own_categories_for(session, caller) if body.get("ownCategoryId") else {})
        ids = _ids(services, request, session, filters)
        if len(ids) > BOOKINGS_MAX:
            raise BadRequest("filter: finds more than {limit} transactions", limit=BOOKINGS_MAX)
        if not dry_run and len(ids) != body["expected"]:
            raise Conflicting("expected: {count} transactions match now", count=len(ids))
        batch_id = f"cor_{uuid4().hex}"
        correction_batches.choose(session, user_id, batch_id, ids, choice, now=now)
        changed = derivation.apply_rules(session, user_id, now=now, transaction_ids=ids)
        rows = changed_rows.examples(session, request, changed, include)
        return {"id": batch_id, "matching": len(ids), "changed": changed.height, **rows}

    return services.change(user_id, work, is_dry_run=dry_run)


def _filters(given: Mapping[str, Any]) -> Filters:
    said = {name: value for name, value in given.items() if value not in (None, "")}
    if not said:
        raise BadRequest("filter: must say something; all transactions are never meant")
    for name in said.keys() & {"dateFrom", "dateTo"}:
        said[name] = read_date(said[name])
    return Filters(**{python_name(name): value for name, value in said.items()})


def _ids(services: Services, request: Request, session: Transaction, filters: Filters) -> list[str]:
    """The ids of the banks' bookings that match the filter, in the accounts that the caller may read."""
    needs = Need.LIST | Need.WORDS if filters.needs_words else Need.LIST
    reading = services.reader.read(session, request.principal.user_id, needs)
    selected = selected_or_all(reading.accounts, filters.account_ids, request.principal)
    rows = reading.search_rows(filters.selection(selected, request.principal)).filter(~pl.col("is_adjusting_entry"))
    wanted = filters.ids(reading, request.principal)
    if wanted is not None:
        rows = rows.filter(pl.col("id").is_in(wanted))
    currency, rates = money_of(services, reading, selected.accounts, rows)
    chosen = matching_rows(
        rows, filters.query(), selection=selected.ids, currency=currency, rates=rates, parts=reading.parts
    )
    ids: list[str] = chosen.select("id").pipe(frame_of)["id"].to_list()
    return ids
