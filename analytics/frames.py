"""The columns that analyses read: names, types, units. The store delivers them; their order never matters.

Amounts are exact decimals in the row's own currency, negative when money leaves the account. Dates are the bank's
calendar days.
"""

import polars as pl

MONEY = pl.Decimal(20, 5)

# The other optimizations take longer than they save on the rows of one user
_OPTIMIZATIONS = pl.QueryOptFlags.none(comm_subexpr_elim=True, projection_pushdown=True)


def frame_of(plan: pl.LazyFrame) -> pl.DataFrame:
    """The rows of a plan, computed in memory and in the order of its steps. A filter of the plan has to look at a
    column: from 16,384 rows on, Polars asks each of its threads, and takes a constant for one row of each."""
    # `collect` would hand each step to the threads of Polars and wait for it, `collect_all` hands them the plan
    return pl.collect_all([plan], engine="in-memory", optimizations=_OPTIMIZATIONS)[0]


BOOKINGS: dict[str, pl.DataType] = {
    "id": pl.String(),
    "account_id": pl.String(),
    "booking_date": pl.Date(),
    "amount": MONEY,
    "currency": pl.String(),
    "category": pl.String(),
    "counterpart_name": pl.String(),
    "counterpart_iban": pl.String(),
    "merchant_name": pl.String(),
    "is_adjusting_entry": pl.Boolean(),
    "transfer_account_id": pl.String(),  # the own account on the other side
    "transfer_id": pl.String(),  # the other leg; null while it has not arrived
}
"""One row per booked transaction of one user's selected accounts (cashflow, snapshot, and the rows behind them)."""

COUNTED = {name: dtype for name, dtype in BOOKINGS.items() if name != "id"}
"""BOOKINGS without ids, for figures alone: ids are a fifth of what the store reads for a long history."""

SEARCHED: dict[str, pl.DataType] = {
    **BOOKINGS,
    "type": pl.String(),
    "purpose": pl.String(),
    "detailed_category": pl.String(),
    "is_potential_duplicate": pl.Boolean(),
    "is_uncategorised": pl.Boolean(),
    "is_pending": pl.Boolean(),
}
"""One row per transaction of one user's selected accounts, booked or pending (search, totals)."""

CHARGES: dict[str, pl.DataType] = {
    "user_id": pl.String(),
    "id": pl.String(),
    "account_id": pl.String(),
    "booking_date": pl.Date(),
    "amount": MONEY,
    "currency": pl.String(),
    "type": pl.String(),
    "merchant_name": pl.String(),
    "counterpart_name": pl.String(),
    "counterpart_iban": pl.String(),
    "creditor_id": pl.String(),
    "mandate_reference": pl.String(),
    "purpose": pl.String(),
    "is_potential_duplicate": pl.Boolean(),
    "is_adjusting_entry": pl.Boolean(),
    "transfer_account_id": pl.String(),  # the own account on the other side
}
"""One row per booked transaction of any number of users, incoming ones included (recurring payments)."""

SUBSCRIPTIONS: dict[str, pl.DataType] = {
    "user_id": pl.String(),
    "id": pl.String(),  # "sub_...": stays through further charges and price changes
    "merchant_name": pl.String(),
    "amount": MONEY,  # the latest charge, positive
    "currency": pl.String(),
    "frequency": pl.String(),  # weekly, biweekly, monthly, quarterly, yearly
    "last_charged": pl.Date(),
    "occurrences": pl.Int64(),  # charges within the six months
    "charge_ids": pl.List(pl.String()),  # ids of all charges that were found, oldest first
    "confidence": pl.Float64(),  # 0 to 1
    "next_expected": pl.Date(),
}
"""One row per detected recurring payment; per user by yearly cost descending, then name."""

STATED: dict[str, pl.DataType] = {
    "account_id": pl.String(),
    "sequence": pl.String(),
    "opening": MONEY,  # null for a balance alone
    "opening_date": pl.Date(),
    "closing": MONEY,
    "closing_date": pl.Date(),
    "is_authoritative": pl.Boolean(),  # proves its balances
    "adds_up": pl.Boolean(),  # whether its own bookings explain its balances; null where unknown
    "told_from": pl.Date(),  # the first day of the bookings that the source reported; null for a file
    "told_until": pl.Date(),
    "received_at": pl.Datetime("us"),
    "position": pl.Int32(),
}
"""One row per statement, balance or reported period of an account (integrity)."""

MOVED: dict[str, pl.DataType] = {
    "account_id": pl.String(),
    "booking_date": pl.Date(),
    "amount": MONEY,
    "created_at": pl.Datetime("us"),
}
"""One row per booked transaction that is no adjusting entry (integrity)."""

FORMER: dict[str, pl.DataType] = {**MOVED, "ended_at": pl.Datetime("us")}
"""One row per former amount: of a booking that was corrected or taken back since, or negated, of one that replaced it
(integrity)."""

FLAGGED: dict[str, pl.DataType] = {
    "id": pl.String(),
    "account_id": pl.String(),
    "booking_date": pl.Date(),
    "amount": MONEY,
    "is_adjusting_entry": pl.Boolean(),
    "is_potential_duplicate": pl.Boolean(),
}
"""One row per booked transaction with at least one of the two flags (integrity)."""

WAITING: dict[str, pl.DataType] = {
    "id": pl.String(),
    "account_id": pl.String(),
    "booking_date": pl.Date(),
    "amount": MONEY,
}
"""One row per pending transaction (integrity)."""

CLASSIFIABLE: dict[str, pl.DataType] = {
    "amount": MONEY,
    "counterpart_name": pl.String(),
    "counterpart_iban": pl.String(),
    "creditor_id": pl.String(),
    "mandate_reference": pl.String(),
    "purpose": pl.String(),
    "bank_transaction_code": pl.String(),
    "purpose_code": pl.String(),
    "gvc": pl.String(),
    "swift_code": pl.String(),
    "mcc": pl.String(),
    "bank_text": pl.String(),
    "merchant_name": pl.String(),  # only the name that the source itself stated
    "account_kind": pl.String(),  # of the account the row belongs to
    "is_reversal": pl.Boolean(),
    "is_return": pl.Boolean(),
}
"""One row per booking whose type, category and merchant are to be derived; other columns pass through."""

FIGURE = pl.Decimal(38, 5)
"""Sums and converted amounts: wide enough for any sum of MONEY."""

RATES: dict[str, pl.DataType] = {
    "currency": pl.String(),
    "day": pl.Date(),
    "rate": pl.Decimal(14, 6),  # units of the currency for one euro; null: no longer quoted from this day on
}
"""Reference rates of the European Central Bank, one row per currency and day of publication, in that order."""

BALANCES: dict[str, pl.DataType] = {
    "id": pl.String(),
    "name": pl.String(),
    "iban": pl.String(),
    "kind": pl.String(),
    "bank_name": pl.String(),
    "currency": pl.String(),
    "balance": MONEY,  # booked; null when no source stated it
}
"""One row per selected account, in the order in which they are listed (snapshot)."""

HOLDINGS: dict[str, pl.DataType] = {
    "id": pl.String(),
    "currency": pl.String(),
    "balance": MONEY,  # booked; null when no source stated it
    "balance_date": pl.Date(),  # the day at whose end it holds; null means today
}
"""One row per selected account (balances over time)."""

OWN_ACCOUNTS: dict[str, pl.DataType] = {"id": pl.String(), "iban": pl.String()}
"""One row per account of one user, whatever is selected (pairing of transfers)."""

LEGS: dict[str, pl.DataType] = {
    "id": pl.String(),
    "account_id": pl.String(),
    "booking_date": pl.Date(),
    "amount": MONEY,
    "currency": pl.String(),
    "counterpart_iban": pl.String(),
    "type": pl.String(),
    "is_adjusting_entry": pl.Boolean(),
}
"""One row per booked transaction of one user (pairing of transfers)."""

LOOKALIKES: dict[str, pl.DataType] = {
    "id": pl.String(),
    "account_id": pl.String(),
    "booking_date": pl.Date(),
    "amount": MONEY,
    "currency": pl.String(),
    "counterpart_name": pl.String(),
    "counterpart_iban": pl.String(),
    "purpose": pl.String(),
    "is_adjusting_entry": pl.Boolean(),
    "connection_id": pl.String(),
    "batch_id": pl.String(),
}
"""One row per booked transaction, new or stored (potential duplicates)."""
