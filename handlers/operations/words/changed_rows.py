"""The bookings that a rule or a correction changes, before and after the change."""

import polars as pl

from auth.principal import Principal
from auth.scopes import READ_TRANSACTIONS
from handlers import json_shapes
from handlers.names import Json
from handlers.web.errors import Forbidden
from handlers.web.request import Request
from storage import transactions
from storage.database import Session

SHOWN_MAX = 100


def seen(changed: pl.DataFrame, caller: Principal) -> pl.DataFrame:
    """Those of the rows that `derivation.apply_rules` changed that the caller may read."""
    if caller.coverage is None:
        return changed
    return changed.filter(pl.col("account_id").is_in(list(caller.coverage.accounts)) != caller.coverage.is_all_but)


def examples(session: Session, request: Request, changed: pl.DataFrame, include: str | None) -> Json:
    """The member `transactions` if `include` is given, else nothing: of the rows that `derivation.apply_rules` changed,
    the hundred of the latest booking dates, latest first, with values before and after. Raises Forbidden for a caller
    who may not read bookings."""
    if include is None:
        return {}
    if READ_TRANSACTIONS not in request.principal.scopes:
        raise Forbidden("Insufficient scope. Required: {wanted}", wanted=READ_TRANSACTIONS)
    newest = transactions.rows_by_id(session, request.principal.user_id, changed["id"], limit=SHOWN_MAX)
    shown = changed.filter(pl.col("id").is_in(list(newest)))
    before = {row["id"]: row for row in shown.iter_rows(named=True)}
    return {
        "transactions": [
            {
                "id": row["id"],
                "bookingDate": json_shapes.day(row["booking_date"]),
                "amount": json_shapes.money(row["amount"], row["currency"]),
                "currency": row["currency"],
                "counterpartName": row["counterpart_name"],
                "before": _derived_fields(before[row["id"]], "old_"),
                "after": _derived_fields(before[row["id"]], ""),
            }
            for row in newest.values()
        ]
    }


def _derived_fields(row: dict[str, str | None], prefix: str) -> Json:
    return {
        "category": row[f"{prefix}category"],
        "type": row[f"{prefix}type"],
        "merchantName": row[f"{prefix}merchant_name"],
    }
