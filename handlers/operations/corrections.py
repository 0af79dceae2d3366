"""POST, GET and DELETE /corrections: a category given to one booking, remembered for all bookings of its
counterpart."""

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

import polars as pl

from analytics.classification.intermediaries import is_intermediary
from analytics.classification.rules import ChosenCategory, comparable_value, correction_keys
from auth.principal import Principal
from auth.scopes import WRITE_ACCOUNTS
from handlers.names import Json
from handlers.operations.categories.own import own_categories_for
from handlers.operations.categories.places import place_named
from handlers.operations.selection import owner_of, readable_booking, sight_of
from handlers.operations.words import changed_rows
from handlers.web.errors import BadRequest, NotFound
from handlers.web.request import Request
from handlers.work.services import Services
from storage import rules, transactions
from storage.annotations import correction_batches
from storage.database import Row, Session, Transaction
from storage.importing import derivation

NAMELESS = "transactionId: this transaction names no payee or payer to remember. Write a rule instead"
COMPARED = {
    "creditor": ("counterpartCreditorId", "creditor_id"),
    "iban": ("counterpartIban", "counterpart_iban"),
    "merchant": ("merchantName", transactions.MERCHANT),
    "name": ("counterpartName", "counterpart_name"),
}
"""By the kind of a correction's key (the part before its colon): the field of the interface, and the column in SQL."""


def create_correction(
    services: Services, request: Request, *, dry_run: bool, include: str | None, body: Mapping[str, Any]
) -> Json:
    """Remember a category for the counterpart of a booking, and apply it to stored bookings: `matching` is the number
    of bookings for which it decides, `changed` the number of those that got another value. A dry run answers the same
    and stores nothing. Raises NotFound, and BadRequest for a booking that names no counterpart."""
    user_id, now = owner_of(request), services.clock.now()
    row = readable_booking(transactions.find(services.of(user_id), user_id, body["transactionId"]), request.principal)
    key = key_of(row)
    if key is None:
        raise BadRequest(NAMELESS)

    def work(session: Transaction) -> Json:
        choice = place_named(body, own_categories_for(session, request.principal) if body.get("ownCategoryId") else {})
        rules.correct(session, user_id, key, choice)
        some = _about(session, user_id, key)
        changed = derivation.apply_rules(session, user_id, now=now, transaction_ids=some)
        changed = changed_rows.seen(changed, request.principal)
        sees = sight_of(session, request.principal)
        decided = _decided(session, user_id, key, sees)
        rows = changed_rows.examples(session, request, changed, include)
        return {**_shape(key, choice, decided), "changed": changed.height, **rows}

    return services.change(user_id, work, is_dry_run=dry_run)


def list_corrections(services: Services, request: Request) -> Json:
    """List the user's corrections of counterparts, sorted by name without regard to case; none about a counterpart of
    nothing but bookings that the caller may not read."""
    user_id, caller = owner_of(request), request.principal
    with services.of(user_id).transaction() as session:
        known, sees = rules.corrections(session, user_id), sight_of(session, caller)
        shapes = [
            _shape(key, choice, _decided(session, user_id, key, sees))
            for key, choice in known.items()
            if is_seen(session, caller, sees, key)
        ]
    return {"corrections": sorted(shapes, key=lambda each: (str(each["name"]).casefold(), str(each["id"])))}


def delete_correction(services: Services, request: Request, *, id: str) -> Json:
    """Delete a correction. The bookings of a batch get back what the user had chosen for them before, unless something
    else has been chosen since; those of a counterpart are classified anew. `changed` is the number of bookings that
    differ then. Raises NotFound."""
    user_id, now = owner_of(request), services.clock.now()

    def work(session: Transaction) -> Json:
        some = correction_batches.take_back(session, user_id, id, now=now)
        if some is None:
            key = next((key for key in rules.corrections(session, user_id) if correction_id(key) == id), None)
            if key is None:
                raise NotFound("Correction not found")
            rules.forget_correction(session, user_id, key)
            some = _about(session, user_id, key)
        changed = derivation.apply_rules(session, user_id, now=now, transaction_ids=some)
        return {"changed": changed_rows.seen(changed, request.principal).height}

    return services.change(user_id, work)


def is_seen(session: Session, caller: Principal, sees: Callable[[str], bool], key: str) -> bool:
    """Whether the correction with this key is about some booking of an account that the caller `sees`, or about none
    at all."""
    if caller.coverage is None and WRITE_ACCOUNTS in caller.scopes:
        return True
    about = transactions.rows_by_id(session, caller.user_id, _about(session, caller.user_id, key)).values()
    return not about or any(sees(row["account_id"]) for row in about)


def _about(session: Session, user_id: str, key: str) -> list[str]:
    """The ids of the bookings for which a correction with this key may decide."""
    kind, _, wanted = key.partition(":")
    field, column = COMPARED[kind]
    return transactions.ids_where(session, user_id, column, lambda value: comparable_value(field, value) == wanted)


def key_of(row: Row) -> str | None:
    """The key under which a correction of this booking's counterpart is stored: by creditor id, IBAN, merchant or
    name, by merchant alone where the counterpart only passes payments on for others. None if nothing names it."""
    carries_for_others = is_intermediary(row["counterpart_name"])
    keys = correction_keys(
        creditor_id=None if carries_for_others else row["creditor_id"],
        counterpart_iban=None if carries_for_others else row["counterpart_iban"],
        merchant_name=row["merchant_name"],
        counterpart_name=None if carries_for_others else row["counterpart_name"],
        kind=row["type"],
    )
    return next(iter(keys), None)


def correction_id(key: str) -> str:
    """The id of the correction with this key: a hash, because the key may hold an IBAN."""
    return "cor_" + blake2b(key.encode(), digest_size=16).hexdigest()


def _decided(session: Session, user_id: str, key: str, sees: Callable[[str], bool]) -> pl.DataFrame:
    """The bookings of accounts that the caller `sees` for which the correction with this key decides, the latest
    booking date first, with the `value` that the key compares."""
    kind, _, value = key.partition(":")
    field, column = COMPARED[kind]
    rows = transactions.rows_by_correction(session, user_id, kind, column)
    meant = [said for said in rows["value"].unique().drop_nulls() if comparable_value(field, said) == value]
    seen = [id_ for id_ in rows["account_id"].unique() if sees(id_)]
    return rows.filter(pl.col("value").is_in(meant) & pl.col("account_id").is_in(seen))


def _shape(key: str, choice: ChosenCategory, decided: pl.DataFrame) -> Json:
    """The correction as JSON; `decided` are those of its bookings that the caller may read."""
    name = "value" if key.startswith("merchant:") else "counterpart_name"
    names = (merchant or said for merchant, said in decided.select("merchant_name", other=name).iter_rows())
    return {
        "id": correction_id(key),
        "name": next((name for name in names if name), key.partition(":")[2]),
        "category": choice.category,
        **({"detailedCategory": choice.detailed_category} if choice.detailed_category else {}),
        **({"ownCategoryId": choice.own_category_id} if choice.own_category_id else {}),
        "matching": decided.height,
    }
