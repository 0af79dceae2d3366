"""Bookings that only an account in question has: until its user has said whether it is another account of theirs, that
one holds them, so that they count, and once. What both have counts there anyway.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache, partial

import polars as pl

from analytics.frames import columns
from storage import journal
from storage.changes import feed
from storage.database import Session, Transaction, set_values
from storage.importing.matching.booking_keys import FORMER, transaction_id
from storage.importing.spool import record_of
from storage.importing.statements import settle_again

DAYS_APART_MAX = timedelta(days=2)  # between the days that two sources give one booking
IN_QUESTION = "SELECT {} FROM accounts WHERE user_id = $1 AND hidden_at IS NOT NULL AND perhaps_same_as IS NOT NULL"
LENT = columns("id, account_id")

Rows = Sequence[tuple[str, date]]
DatesByAmount = Mapping[Decimal, Sequence[date]]
"""The booking dates of each amount, in their order."""


def lent(session: Session, user_id: str) -> pl.DataFrame:
    """The bookings that other accounts hold for those in question: `id`, `account_id` (where it is held) and `owner`.
    Whose a booking is says its id, which is made of it; a file may tell of both accounts."""
    schema = LENT | {"owner": pl.String()}
    if not session.rows(f"{IN_QUESTION.format('id')} LIMIT 1", user_id):
        return pl.DataFrame(schema=schema)
    rows = session.rows(
        "SELECT DISTINCT t.id, t.account_id, t.identity, c.account_id AS owner FROM transactions AS t"
        " JOIN contributions AS c ON c.user_id = t.user_id AND c.batch_id = t.batch_id"
        " WHERE t.user_id = $1 AND c.user_id = $1 AND t.account_id <> c.account_id"
        f" AND c.account_id IN ({IN_QUESTION.format('id')})",
        user_id,
    )
    return pl.DataFrame([row for row in rows if transaction_id(row["owner"], row["identity"]) == row["id"]], schema)


def give_back(session: Session, user_id: str) -> pl.DataFrame:
    """Give the accounts in question the bookings that others hold for them, and return these with the account that held
    them, as LENT. What changes single accounts begins with this and ends with `lend`."""
    rows = lent(session, user_id)
    for (owner,), held in rows.group_by("owner"):
        _move(session, user_id, held["id"].to_list(), to=str(owner))
    return rows.select(*LENT)


def lend(session: Transaction, user_id: str, before: pl.DataFrame, *, now: datetime) -> pl.DataFrame:
    """Where a hidden account may be the same as another one, show the bookings that only the hidden one has in that
    other account, whose statements may miss them: no adjusting entry counts them again, and a balance that its person
    said goes on with them. `before` are those that were shown there (of `give_back`). Returns the rows for the journal
    (journal.CHANGES)."""
    held = [pl.DataFrame(schema=LENT)]
    for id_, holder in _holders(session, user_id).items():
        ids = _only_in(session, user_id, id_, holder)
        _move(session, user_id, ids, to=holder)
        held.append(pl.DataFrame({"id": ids}, schema={"id": pl.String}).with_columns(account_id=pl.lit(holder)))
    held_now = pl.concat(held)
    if held_now.is_empty() and before.is_empty():
        return journal.change_rows(held_now["id"], "modified")
    new, ended = held_now.join(before, on=list(LENT), how="anti"), before.join(held_now, on="id", how="anti")
    if not new.is_empty():
        state = session.coming_state(user_id)
        of_new = {"user_id": user_id, "id": new["id"].to_list()}
        set_values(session, "transactions", of_new, added_state=state, changed_state=state)
    hidden = session.rows("SELECT id FROM accounts WHERE user_id = $1 AND hidden_at IS NOT NULL", user_id)
    there = session.frame(
        "SELECT id FROM transactions WHERE user_id = $1 AND id = ANY($2::TEXT[]) AND account_id = ANY($3::TEXT[])",
        *(user_id, ended["id"].to_list(), [row["id"] for row in hidden]),
        schema={"id": pl.String()},
    )
    feed.record_removed(session, user_id, ended.join(there, on="id", how="semi"))
    holders = pl.concat([before, held_now])["account_id"].unique().sort()
    gaps = [change for id_ in holders for change in settle_again(session, user_id, id_, now=now)]
    moved = journal.change_rows(pl.concat([new, ended])["id"], "modified")
    return pl.concat([moved, pl.DataFrame(gaps, schema=journal.CHANGES, orient="row")])


def _holders(session: Session, user_id: str) -> Mapping[str, str]:
    """For each account in question the one that holds its bookings: the one that it may be or, while that is in
    question itself, the one that holds that one's, which comes first. What may be an account that its user has hidden
    is held by none."""
    rows = session.rows("SELECT id, perhaps_same_as, hidden_at FROM accounts WHERE user_id = $1 ORDER BY id", user_id)
    holders = {row["id"]: row["id"] for row in rows if row["hidden_at"] is None}
    asked = {row["id"]: row["perhaps_same_as"] for row in rows if row["hidden_at"] is not None}
    for _ in asked:
        holders |= {id_: holders[other] for id_, other in asked.items() if other in holders}
    return {id_: holder for id_, holder in holders.items() if id_ != holder}


def dates_by_amount(session: Session, user_id: str, account_id: str) -> DatesByAmount:
    return {amount: [day for _, day in rows] for amount, rows in _by_amount(session, user_id, account_id).items()}


def _only_in(session: Session, user_id: str, account_id: str, other: str) -> list[str]:
    """The ids of the account's bookings that the other one does not have, by amount and day, or else within
    DAYS_APART_MAX where one of the two was told the other's day, and never had: what its bank has corrected or taken
    back since, an older file tells nobody."""
    dates_of, former_of, found = dates_by_amount(session, user_id, other), _former_dates(session, user_id, other), []
    told = cache(partial(_told_days, session, user_id))

    def left_over(rows: Rows, free: Counter[date], days_apart_max: int) -> Rows:
        left = []
        for id_, day in rows:
            days = [day + timedelta(days=number) for number in range(-days_apart_max, days_apart_max + 1)]
            near = (
                each for each in days if free[each] and (day == each or day in told(other) or each in told(account_id))
            )
            if there := next(near, None):
                free[there] -= 1
            else:
                left.append((id_, day))
        return left

    for amount, rows in _by_amount(session, user_id, account_id).items():
        now, former = Counter(dates_of.get(amount, ())), Counter(former_of[amount])
        left = left_over(left_over(rows, now, 0), now, DAYS_APART_MAX.days)
        found += [id_ for id_, _ in left_over(left, former, DAYS_APART_MAX.days)]
    return found


def _told_days(session: Session, user_id: str, account_id: str) -> set[date]:
    """The days from the first to the last booking of each import of the account."""
    day = "substr(known.wording, strpos(known.wording, $3) + length($3), 10)"
    spans = session.rows(
        f"SELECT min({day}) AS first, max({day}) AS last FROM contributions AS told"
        " JOIN contribution_bookings AS seen ON seen.user_id = told.user_id AND seen.contribution = told.sequence"
        " JOIN booking_wordings AS known ON known.user_id = told.user_id AND known.number = seen.booking"
        " WHERE told.user_id = $1 AND told.account_id = $2 GROUP BY told.sequence",
        *(user_id, account_id, '"booking_date":"'),
    )
    both = [[date.fromisoformat(row[end]) for end in ("first", "last")] for row in spans]
    return {first + timedelta(days=number) for first, last in both for number in range((last - first).days + 1)}


def _former_dates(session: Session, user_id: str, account_id: str) -> Mapping[Decimal, Sequence[date]]:
    """The dates of each amount that bookings of the account had before they were corrected or taken back."""
    found: dict[Decimal, list[date]] = defaultdict(list)
    of_account = (user_id, account_id)
    for row in session.rows(
        "SELECT amount, booking_date, claims FROM transactions WHERE user_id = $1 AND account_id = $2"
        " AND strpos(claims, $3) > 0",
        *(*of_account, f'"{FORMER}'),
    ):
        said = [record_of(text) for key, text in json.loads(row["claims"]).items() if key.startswith(FORMER)]
        moved = {(each.amount, each.booking_date) for each in said} - {(row["amount"], row["booking_date"])}
        for amount, day in moved:
            found[amount].append(day)
    for row in session.rows(
        "SELECT amount, booking_date FROM taken_back_transactions WHERE user_id = $1 AND account_id = $2", *of_account
    ):
        found[row["amount"]].append(row["booking_date"])
    return found


def _by_amount(session: Session, user_id: str, account_id: str) -> Mapping[Decimal, Rows]:
    found: dict[Decimal, list[tuple[str, date]]] = {}
    for row in session.rows(
        "SELECT id, amount, booking_date FROM transactions WHERE user_id = $1 AND account_id = $2"
        " AND NOT is_adjusting_entry ORDER BY booking_date, id",
        *(user_id, account_id),
    ):
        found.setdefault(row["amount"], []).append((row["id"], row["booking_date"]))
    return found


def _move(session: Session, user_id: str, ids: Sequence[str], *, to: str) -> None:
    if ids:
        set_values(session, "transactions", {"user_id": user_id, "id": list(ids)}, account_id=to)
