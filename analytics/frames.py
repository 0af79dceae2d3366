"""The columns that analyses read: names, types, units. The store delivers them; their order never matters.

Amounts are exact decimals in the row's own currency, negative when money leaves the account. Dates are the bank's
calendar days.
"""

from collections.abc import Iterable
from io import BytesIO

import polars as pl

MONEY = pl.Decimal(20, 5)

# The other optimizations take longer than they save on the rows of one user
_OPTIMIZATIONS = pl.QueryOptFlags.none(comm_subexpr_elim=True, projection_pushdown=True)


def frame_of(plan: pl.LazyFrame) -> pl.DataFrame:
    """The rows of a plan, computed in memory and in the order of its steps. A filter of the plan has to look at a
    column: from 16,384 rows on, Polars asks each of its threads, and takes a constant for one row of each."""
    # `collect` would hand each step to the threads of Polars and wait for it, `collect_all` hands them the plan
    return pl.collect_all([plan], engine="in-memory", optimizations=_OPTIMIZATIONS)[0]


def among(values: pl.Series | Iterable[object]) -> pl.Expr:
    """These values, for `is_in`. Polars puts a series into a list by a plan of its own, and other values one by one."""
    return pl.lit(values if isinstance(values, pl.Series) else pl.Series(list(values))).implode()


def compact(frame: pl.DataFrame) -> pl.DataFrame:
    """A copy with texts of its own: those of a frame hold on to all texts that it was made from."""
    copy = BytesIO()
    frame.write_ipc_stream(copy)
    copy.seek(0)
    return pl.read_ipc_stream(copy)


FIGURE = pl.Decimal(38, 5)
"""Sums and converted amounts: wide enough for any sum of MONEY."""

TYPES: dict[str, pl.DataType] = {
    **dict.fromkeys(("amount", "original_amount", "balance", "opening", "closing", "transfer_fee"), MONEY),
    **dict.fromkeys(("income", "expenses", "net"), FIGURE),
    **dict.fromkeys(("booking_date", "value_date", "opening_date", "closing_date", "balance_date"), pl.Date()),
    **dict.fromkeys(("day", "month", "first_month", "last_charged", "next_expected"), pl.Date()),
    **dict.fromkeys(("told_from", "told_until"), pl.Date()),
    **dict.fromkeys(("created_at", "received_at", "ended_at", "hour", "last_at"), pl.Datetime("us")),
    **dict.fromkeys(("is_adjusting_entry", "is_potential_duplicate", "is_reversal", "is_return"), pl.Boolean()),
    **dict.fromkeys(("is_uncategorised", "is_pending", "is_booked", "is_authoritative", "adds_up"), pl.Boolean()),
    "is_exchange": pl.Boolean(),
    **dict.fromkeys(("occurrences", "calls", "refusals"), pl.Int64()),
    "position": pl.Int32(),
    "charge_ids": pl.List(pl.String()),
    "charge_days": pl.List(pl.Date()),
    "confidence": pl.Float64(),
    "rate": pl.Decimal(14, 6),
}
"""The types of the columns that are no texts: a column has the same type wherever it stands."""


def columns(names: str) -> dict[str, pl.DataType]:
    """The columns with these names, as a statement lists them, each with its type."""
    return {name: TYPES.get(name, pl.String()) for name in names.split(", ")}


BOOKINGS = columns(
    "id, account_id, booking_date, amount, currency, category, counterpart_name, counterpart_iban, merchant_name,"
    " is_adjusting_entry, transfer_account_id, transfer_id, transfer_fee"
)
"""One row per booked transaction of one user's selected accounts (cashflow, snapshot, and the rows behind them).
`transfer_account_id` is the own account on the other side, `transfer_id` the other leg, null while it has not
arrived, `transfer_fee` what a leaving leg lost on its way, positive, null where nothing."""

COUNTED = {name: dtype for name, dtype in BOOKINGS.items() if name != "id"}
"""BOOKINGS without ids, for figures alone: ids are a fifth of what the store reads for a long history."""

SEARCHED = BOOKINGS | columns("type, purpose, detailed_category, is_potential_duplicate, is_uncategorised, is_pending")
"""One row per transaction of one user's selected accounts, booked or pending (search, totals)."""

CHARGES = columns(
    "user_id, id, account_id, booking_date, amount, currency, type, merchant_name, counterpart_name, counterpart_iban,"
    " creditor_id, mandate_reference, purpose, is_potential_duplicate, is_adjusting_entry, transfer_account_id"
)
"""One row per booked transaction of any number of users, incoming ones included (recurring payments)."""

SUBSCRIPTIONS = columns(
    "user_id, id, merchant_name, amount, currency, frequency, last_charged, occurrences, charge_ids, charge_days,"
    " confidence, next_expected, account_id"
)
"""One row per detected recurring payment; per user by yearly cost descending, then name. `id` ("sub_...") stays through
further charges and price changes. `amount` is the latest charge, positive; `frequency` is weekly, biweekly, monthly,
quarterly or yearly. `occurrences` are the charges within the six months, `charge_ids` and `charge_days` the ids and
days of all charges that were found, oldest first. `confidence` is from 0 to 1."""

STATED = columns(
    "account_id, sequence, opening, opening_date, closing, closing_date, is_authoritative, adds_up, told, told_from,"
    " told_until, received_at, position"
)
"""One row per statement, balance or reported period of an account (integrity). `opening` is null for a balance alone.
`is_authoritative` says that it proves its balances, `adds_up` whether its own bookings explain them, null where that is
unknown. `told` has the ids of these bookings, parted by blanks, null where they are not known. `told_from` is the first
day of the bookings that the source reported, null for a file."""

MOVED = columns("id, account_id, booking_date, amount, created_at")
"""One row per booked transaction that is no adjusting entry (integrity)."""

FORMER = columns("account_id, booking_date, amount, created_at, ended_at")
"""One row per former amount: of a booking that was corrected or taken back since, or negated, of one that replaced it
(integrity)."""

FLAGGED = columns("id, account_id, booking_date, amount, is_adjusting_entry, is_potential_duplicate")
"""One row per booked transaction with at least one of the two flags (integrity)."""

WAITING = columns("id, account_id, booking_date, amount")
"""One row per pending transaction (integrity)."""

CLASSIFIABLE = columns(
    "amount, counterpart_name, counterpart_iban, creditor_id, mandate_reference, purpose, bank_transaction_code,"
    " purpose_code, gvc, swift_code, mcc, bank_text, merchant_name, account_kind, is_reversal, is_return"
)
"""One row per booking whose type, category and merchant are to be derived; other columns pass through. `merchant_name`
is only the name that the source itself stated, `account_kind` that of the account the row belongs to."""

RATES = columns("currency, day, rate")
"""Reference rates of the European Central Bank, one row per currency and day of publication, in that order. `rate` is
units of the currency for one euro, null where it is no longer quoted from this day on."""

BALANCES = columns("id, name, iban, kind, bank_name, currency, balance")
"""One row per selected account, in the order in which they are listed (snapshot). `balance` is booked, null when no
source stated it."""

HOLDINGS = columns("id, currency, balance, balance_date")
"""One row per selected account (balances over time). `balance` as in BALANCES, `balance_date` is the day at whose end
it holds, null means today."""

OWN_ACCOUNTS = columns("id, iban, kind, bank_name")
"""One row per IBAN of an account of one user, or per account without one, whatever is selected (pairing of
transfers)."""

LEGS = columns(
    "id, account_id, booking_date, amount, currency, counterpart_iban, type, is_adjusting_entry, detailed_category,"
    " is_exchange"
)
"""One row per booked transaction of one user (pairing of transfers). `is_exchange` says that its words name an exchange
of currencies."""

LOOKALIKES = columns(
    "id, account_id, booking_date, amount, currency, counterpart_name, counterpart_iban, purpose, is_adjusting_entry,"
    " connection_id, batch_id"
)
"""One row per booked transaction, new or stored (potential duplicates)."""
