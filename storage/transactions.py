"""Booked transactions: a page, a count, one row, and the frames that the analyses read.

Every query contains the user's id: the table is sorted by it, and it also keeps users apart.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import NamedTuple

import polars as pl

from analytics.classification.facts import CASH, OF_CASH
from analytics.frames import BOOKINGS, CHARGES, SEARCHED, columns
from analytics.letters import fold, plain
from analytics.notices.bookings import NOTICED
from analytics.searching.filters import is_uncategorised
from analytics.searching.parts import with_part_in
from storage.database import Row, Session

LIST_COLUMNS = (
    "id, account_id, amount, currency, booking_date, value_date, merchant_name, counterpart_name,"
    " counterpart_iban, mandate_reference, type, category, detailed_category, purpose"
)
LISTED = columns(f"{LIST_COLUMNS}, search_text")
"""The columns of a booking that a page and its filters read."""
KEPT = LISTED | BOOKINGS | columns("is_potential_duplicate, category_rule")
"""The columns of a booking that a page, its filters, searches and the figures read."""
DETAIL_COLUMNS = LIST_COLUMNS + (
    ", counterpart_bic, counterpart_bank_name, creditor_id, debitor_id, bank_transaction_code, purpose_code,"
    " is_potential_duplicate, is_adjusting_entry, created_at"
)
ROWS_AT_ONCE = 10_000
PORTION_ROWS = 20_000
LISTED_AT_ONCE = 50_000
DAY = timedelta(days=1)
BOOKED = columns("booking_date")
NOT_HIDDEN = "account_id NOT IN (SELECT id FROM accounts WHERE user_id = $1 AND hidden_at IS NOT NULL)"
RULE_COLUMNS = (
    ", type_rule, category_rule, detailed_rule, merchant_rule, transfer_rule, transfer_id, transfer_account_id"
    ", transfer_fee"
)
MERCHANT = (
    "coalesce(nullif(merchant_name, ''),"
    f" CASE WHEN type IN ({', '.join(repr(each) for each in OF_CASH)}) THEN '{CASH}' END)"
)
"""What `analytics.classification.rules.payee` says of a row, in SQL."""
DETAILS = {
    **{name: dtype for name, dtype in columns(f"{DETAIL_COLUMNS}{RULE_COLUMNS}").items() if name not in KEPT},
    **columns("id, end_to_end_id"),
}
"""The columns read for a booking shown alone, besides KEPT; "id" is in both."""

SOURCE_COLUMNS = (
    ", source_merchant_name, end_to_end_id, gvc, swift_code, mcc, bank_text, original_amount, original_currency,"
    " is_reversal, is_return"
)
EVERYTHING = columns(f"{DETAIL_COLUMNS}{RULE_COLUMNS}{SOURCE_COLUMNS}")
"""The columns of a booking in an export."""

_PLACES = ("category", "detailed_category")


class Selection(NamedTuple):
    """A selection of a user's booked transactions: those that meet every condition given; both ends of the date range
    are inclusive."""

    account_ids: Sequence[str] | None = None  # None: all that are not hidden, which is also faster
    category: str | None = None
    date_from: date | None = None
    date_to: date | None = None
    search: str | None = None
    type: str | None = None  # used by exports only, as are the amounts; pages cannot be filtered by them
    amount_min: Decimal | None = None
    amount_max: Decimal | None = None
    detailed_category: str | None = None
    ids: Sequence[str] | None = None  # used by lists and exports: only these bookings
    split_ids: Sequence[str] = ()  # also select these bookings, which have a part in the place

    def condition(self, user_id: str) -> tuple[str, list[object]]:
        """The condition of this selection for a WHERE clause, and its parameters, $1 (the user) onwards. Hidden
        accounts are left out unless accounts are named."""
        parts = ["user_id = $1"]
        values: list[object] = [user_id]
        if self.account_ids is not None:
            values.append(list(self.account_ids))
            parts.append("account_id = ANY($2::TEXT[])")
        else:
            parts.append(NOT_HIDDEN)
        places = [each for each in _PLACES if getattr(self, each) is not None]
        if places:
            wanted = [f"{each} = ${len(values) + number}" for number, each in enumerate(places, 1)]
            values += [getattr(self, each) for each in places]
            parts.append(" AND ".join(wanted))
            if self.split_ids:
                values.append(list(self.split_ids))
                parts[-1] = f"(({parts[-1]}) OR id = ANY(${len(values)}::TEXT[]))"
        for column, operator, value in (
            ("booking_date", ">=", self.date_from),
            ("booking_date", "<=", self.date_to),
            ("type", "=", self.type),
            ("amount", ">=", self.amount_min),
            ("amount", "<=", self.amount_max),
        ):
            if value is not None:
                values.append(value)
                parts.append(f"{column} {operator} ${len(values)}")
        if self.ids is not None:
            values.append(list(self.ids))
            parts.append(f"id = ANY(${len(values)}::TEXT[])")
        for spellings in self.spellings:
            values += spellings
            parts.append(f"(strpos(search_text, ${len(values) - 1}) > 0 OR strpos(search_text, ${len(values)}) > 0)")
        return " AND ".join(parts), values

    def expression(self) -> pl.Expr:
        """The selection as an expression on rows in memory, which have a column `search_text` and none of hidden
        accounts. Only accounts, categories, also those of parts, days and search are compared; types, amounts and ids
        are not."""
        text, places = pl.col("search_text"), self._in_place
        conditions = [
            *([pl.col("account_id").is_in(list(self.account_ids))] if self.account_ids is not None else []),
            *([pl.all_horizontal(places)] if places and not self.split_ids else []),
            *([pl.all_horizontal(places) | pl.col("id").is_in(self.split_ids)] if self.split_ids else []),
            *([pl.col("booking_date") >= self.date_from] if self.date_from is not None else []),
            *([pl.col("booking_date") <= self.date_to] if self.date_to is not None else []),
            *(pl.any_horizontal(text.str.contains(each, literal=True) for each in {*word}) for word in self.spellings),
        ]
        return pl.all_horizontal(conditions or pl.lit(value=True))

    def with_parts(self, parts: pl.DataFrame) -> "Selection":
        """The selection, extended to bookings of which a part (analytics.searching.parts.PARTS) is in the selected
        category and finer category; unchanged where neither is selected."""
        places = self._in_place if not parts.is_empty() else ()
        return self._replace(split_ids=with_part_in(parts, *places).to_list() if places else ())

    @property
    def _in_place(self) -> list[pl.Expr]:
        return [pl.col(each) == getattr(self, each) for each in _PLACES if getattr(self, each) is not None]

    @property
    def spellings(self) -> list[tuple[str, str]]:
        """For each different word of the search, its two spellings, by `fold` (ü, ue and u as u) and by `plain` (every
        e kept); the text of a row has to contain one of each pair."""
        return [(fold(word), plain(word)) for word in dict.fromkeys((self.search or "").split())]


def number_of(session: Session, user_id: str) -> int:
    """The number of the user's bookings, those of hidden accounts included."""
    [row] = session.rows("SELECT count(*) AS number FROM transactions WHERE user_id = $1", user_id)
    return int(row["number"])


def count(session: Session, user_id: str, selection: Selection) -> int:
    """The number of booked transactions in the selection."""
    condition, values = selection.condition(user_id)
    return int(session.rows(f"SELECT count(*) AS n FROM transactions WHERE {condition}", *values)[0]["n"])


def list_taken_back(session: Session, user_id: str, account_ids: Sequence[str]) -> list[Row]:
    """The bookings of these accounts that their banks have taken back, the latest booking date first: the columns of a
    list, and `taken_back_at`, when that was noticed (UTC; None where it was not recorded)."""
    return session.rows(
        f"SELECT {LIST_COLUMNS}, taken_back_at FROM taken_back_transactions"
        " WHERE user_id = $1 AND account_id = ANY($2::TEXT[]) ORDER BY booking_date DESC, id DESC",
        *(user_id, list(account_ids)),
    )


def everything(
    session: Session,
    user_id: str,
    columns: Mapping[str, pl.DataType],
    *,
    hidden: Sequence[str] = (),
    days: tuple[date, date] = (date.min, date.max),
) -> pl.DataFrame:
    """These columns of the user's booked transactions of these days, both included, in no order, without those of the
    accounts whose ids are in `hidden`."""
    condition = "user_id = $1"
    values: list[object] = [user_id]
    if hidden:
        values.append(list(hidden))
        condition += " AND account_id <> ALL($2::TEXT[])"
    if days != (date.min, date.max):
        condition += f" AND booking_date BETWEEN ${len(values) + 1} AND ${len(values) + 2}"
        values += days
    query = f"SELECT {', '.join(columns)} FROM transactions WHERE {condition}"
    return session.frame(query, *values, schema=columns)


def spans(session: Session, user_id: str, number: int) -> Iterator[tuple[date, date]]:
    """All days in spans of whole months with some LISTED_AT_ONCE of the user's bookings, the latest first, so that
    memory holds those of one span only; one span where `number`, about how many they have, is not larger."""
    firsts, last = [date.min], date.max
    if number > LISTED_AT_ONCE:
        days = everything(session, user_id, BOOKED)["booking_date"].sort(descending=True)
        months = days.gather_every(LISTED_AT_ONCE, LISTED_AT_ONCE - 1).dt.month_start()
        firsts = [*months.unique(maintain_order=True), date.min]
    for first in firsts:
        yield first, last
        last = first - DAY if first > date.min else first


def newest_first(
    session: Session, user_id: str, columns: Mapping[str, pl.DataType], *, number: int, hidden: Sequence[str] = ()
) -> pl.DataFrame:
    """As `everything`, the latest booking date first, then by id descending; `number` as for `spans`, so that memory
    holds many bookings once."""
    pieces = [
        everything(session, user_id, columns, hidden=hidden, days=days).sort("booking_date", "id", descending=True)
        for days in spans(session, user_id, number)
    ]
    return pl.concat(pieces) if len(pieces) > 1 else pieces[0]


def waiting(session: Session, user_id: str, *, hidden: Sequence[str]) -> pl.DataFrame:
    """The user's pending transactions with the columns KEPT, in no order, without those of the accounts in `hidden`."""
    query = f"SELECT {', '.join(KEPT)} FROM pending_transactions WHERE user_id = $1"
    rows = session.frame(query, user_id, schema=KEPT)
    return rows.filter(~pl.col("account_id").is_in(list(hidden)))


def find(
    session: Session, user_id: str, transaction_id: str, *, may_be_hidden: bool = True, with_rules: bool = True
) -> Row | None:
    """One booked transaction of the user with all its details and, if asked for, the rules that derived them; None
    where there is none, or its account is hidden. With `may_be_hidden=False`, nobody looks whether the account is
    hidden, and the transaction is returned in any case."""
    more = f"{RULE_COLUMNS}, end_to_end_id" if with_rules else ""  # each column costs 0.03 ms
    rows = session.rows(
        f"SELECT {DETAIL_COLUMNS}{more} FROM transactions WHERE user_id = $1 AND id = $2"
        f"{f' AND {NOT_HIDDEN}' if may_be_hidden else ''} LIMIT 1",  # else the rest of a long history is read, too
        *(user_id, transaction_id),
    )
    return rows[0] if rows else None


def pieces(session: Session, user_id: str, account_id: str, selection: Selection) -> Iterator[pl.DataFrame]:
    """The selected bookings of one account with all columns of EVERYTHING, the earliest booking date first, in frames
    of at most ROWS_AT_ONCE rows, none of them empty. `account_id` replaces the accounts of the selection."""
    condition, values = selection._replace(account_ids=[account_id]).condition(user_id)
    after = len(values)
    day, last = date.min, ""
    while True:
        piece = session.frame(
            f"SELECT {', '.join(EVERYTHING)} FROM transactions WHERE {condition}"
            f" AND (booking_date, id) > (${after + 1}, ${after + 2})"
            f" ORDER BY booking_date, id LIMIT {ROWS_AT_ONCE}",
            *values,
            day,
            last,
            schema=EVERYTHING,
        )
        if not piece.is_empty():
            yield piece
        if piece.height < ROWS_AT_ONCE:
            return
        day, last = piece["booking_date"][-1], piece["id"][-1]


def portions(
    session: Session, user_id: str, ids: Sequence[str] | None, *, rows_max: int = PORTION_ROWS
) -> Iterator[tuple[str, Sequence[object]]]:
    """Conditions on `id`, with their parameters from $2 on, which part the user's bookings with these ids (None: all)
    into portions of at most `rows_max`, so that what reads a long history whole needs memory for a portion only."""
    if ids is not None:
        for first in range(0, len(ids), rows_max):
            yield "id = ANY($2::TEXT[])", [list(ids[first : first + rows_max])]
        return
    query = "SELECT id FROM transactions WHERE user_id = $1"
    every = session.frame(query, user_id, schema={"id": pl.String()})["id"].sort()
    for first in range(0, len(every), rows_max):
        yield "id BETWEEN $2 AND $3", [every[first], every[min(first + rows_max, len(every)) - 1]]


def for_search(rows: pl.DataFrame, *, pending: bool = False) -> pl.DataFrame:
    """Rows of KEPT, with the place of each where it is kept (`kept_at`), converted to analytics.frames.SEARCHED with
    that place; `pending` becomes the value of `is_pending` in every row."""
    marks = {"is_uncategorised": is_uncategorised(), "is_pending": pl.lit(pending)}
    return rows.with_columns(**marks).select("kept_at", *SEARCHED)


def rows_by_id(
    session: Session, user_id: str, ids: Iterable[str], *, pending: bool = False, limit: int | None = None
) -> dict[str, Row]:
    """The booked transactions (or, with `pending`, the pending ones) with these ids, by id, with the columns of a list;
    those of hidden accounts too. Ids without one are absent. With a limit, so many of them, the latest first."""
    table = "pending_transactions" if pending else "transactions"
    newest = f" ORDER BY booking_date DESC, id DESC LIMIT {int(limit)}" if limit is not None else ""
    query = f"SELECT {LIST_COLUMNS} FROM {table} WHERE user_id = $1 AND id = ANY($2::TEXT[]){newest}"
    wanted, found = list(ids), list[Row]()
    for first in range(0, len(wanted), PORTION_ROWS):
        found += session.rows(query, user_id, wanted[first : first + PORTION_ROWS])
    found.sort(key=lambda row: (row["booking_date"], row["id"]), reverse=True)
    return {row["id"]: row for row in found[:limit]}


def ids_beginning(session: Session, user_id: str, beginning: str) -> list[str]:
    """The ids of the user's bookings that begin so, in hexadecimal digits, those of hidden accounts too."""
    rows = session.rows(
        "SELECT id FROM transactions WHERE user_id = $1 AND id >= $2 AND id < $3 ORDER BY id",
        *(user_id, beginning, f"{beginning}g"),
    )
    return [row["id"] for row in rows]


def ids_where(session: Session, user_id: str, column: str, is_meant: Callable[[str], bool]) -> list[str]:
    """The ids of the user's bookings, in no order, of which this column has a value that is meant."""
    query = f"SELECT DISTINCT {column} AS value FROM transactions WHERE user_id = $1"
    said = session.frame(query, user_id, schema=columns("value"))["value"]
    values = [value for value in said if value is not None and is_meant(value)]
    query = f"SELECT id FROM transactions WHERE user_id = $1 AND {column} = ANY($2::TEXT[])"
    return session.frame(query, user_id, values, schema=columns("id"))["id"].to_list()


def rows_by_correction(session: Session, user_id: str, kind: str, value: str) -> pl.DataFrame:
    """Account, merchant, counterpart's name and this `value` (a column in SQL) of each booking whose category comes
    from a correction with this kind of key (creditor, iban, merchant), the latest booking date first."""
    return session.frame(
        f"SELECT account_id, merchant_name, counterpart_name, {value} AS value FROM transactions"
        " WHERE user_id = $1 AND category_rule = $2 ORDER BY booking_date DESC, id",
        *(user_id, f"correction:{kind}"),
        schema=columns("account_id, merchant_name, counterpart_name, value"),
    )


def charges(
    session: Session, user_id: str, *, since: date, account_ids: Sequence[str] | None = None, pending: bool = False
) -> pl.DataFrame:
    """The bookings (or, with `pending`, the pending ones) from `since` on from which recurring payments are detected,
    as analytics.frames.CHARGES, in no order; of these accounts, or (None) of all that are not hidden."""
    condition, values = Selection(account_ids=account_ids, date_from=since).condition(user_id)
    table = "pending_transactions" if pending else "transactions"
    columns = {name: dtype for name, dtype in CHARGES.items() if name != "user_id"}
    rows = session.frame(f"SELECT {', '.join(columns)} FROM {table} WHERE {condition}", *values, schema=columns)
    return rows.select(pl.lit(user_id).alias("user_id"), pl.all())  # once in memory, however many rows there are


def noticed(session: Session, user_id: str, *, since: date, names: Sequence[str] | None = None) -> list[Row]:
    """The bookings from `since` on of accounts that are not hidden, as analytics.notices.bookings.NOTICED, in no order;
    with `names` only those of these merchants or counterparts."""
    condition, values = Selection(date_from=since).condition(user_id)
    if names is not None:
        values.append(list(names))
        place = f"ANY(${len(values)}::TEXT[])"
        condition += f" AND (merchant_name = {place} OR counterpart_name = {place})"
    return session.rows(f"SELECT {', '.join(NOTICED)} FROM transactions WHERE {condition}", *values)


def collectors(session: Session, user_id: str, *, since: date, until: date) -> list[Row]:
    """Who collected by direct debit from `since` until before `until`, from any of the user's accounts: `creditor_id`,
    `mandate_reference`, `name`, and the last `day` of each."""
    return session.rows(
        "SELECT creditor_id, mandate_reference, coalesce(merchant_name, counterpart_name, purpose, '') AS name,"
        " max(booking_date) AS day FROM transactions WHERE user_id = $1 AND booking_date >= $2 AND booking_date < $3"
        " AND amount < 0 AND (type = 'direct_debit' OR creditor_id IS NOT NULL OR mandate_reference IS NOT NULL)"
        " GROUP BY creditor_id, mandate_reference, coalesce(merchant_name, counterpart_name, purpose, '')",
        *(user_id, since, until),
    )


def days_of_accounts(session: Session, user_id: str) -> dict[str, tuple[date, date]]:
    """The first and the last booking date of each of the user's accounts that are not hidden, by id."""
    rows = session.rows(
        "SELECT account_id, min(booking_date) AS first, max(booking_date) AS last FROM transactions"
        f" WHERE user_id = $1 AND {NOT_HIDDEN} GROUP BY account_id",
        user_id,
    )
    return {row["account_id"]: (row["first"], row["last"]) for row in rows}


def went_out(session: Session, user_id: str, *, since: date, until: date) -> list[Row]:
    """What went out of the user's accounts from `since` until before `until`: `account_id`, `name` and `amount`
    (negative), each once; and the sum of what is pending, with no name."""
    return session.rows(
        "SELECT account_id, coalesce(merchant_name, counterpart_name, purpose, '') AS name, amount FROM transactions"
        " WHERE user_id = $1 AND booking_date >= $2 AND booking_date < $3 AND amount < 0"
        " GROUP BY account_id, coalesce(merchant_name, counterpart_name, purpose, ''), amount"
        " UNION ALL SELECT account_id, NULL AS name, sum(amount) AS amount FROM pending_transactions"
        " WHERE user_id = $1 AND amount < 0 GROUP BY account_id",
        *(user_id, since, until),
    )


def accounts_with_any(session: Session, user_id: str) -> list[str]:
    """The ids of the user's accounts that have booked transactions, hidden accounts included, sorted."""
    rows = session.rows("SELECT DISTINCT account_id FROM transactions WHERE user_id = $1 ORDER BY account_id", user_id)
    return [row["account_id"] for row in rows]


def histories(session: Session, user_id: str, account_ids: Sequence[str], *, until: date) -> list[Row]:
    """For each account and currency with bookings up to and including `until`, in no order: the `first` booking date,
    the number of `bookings`, and their sum (`total`), adjusting entries included."""
    return session.rows(
        "SELECT account_id, currency, min(booking_date) AS first, count(*) AS bookings, sum(amount) AS total"
        " FROM transactions WHERE user_id = $1 AND account_id = ANY($2::TEXT[]) AND booking_date <= $3"
        " GROUP BY account_id, currency",
        *(user_id, list(account_ids), until),
    )
