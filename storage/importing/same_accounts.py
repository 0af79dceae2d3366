"""Notices a new account that another source seems to have brought before: its user is asked, and it counts once
meanwhile.

A source that states no IBAN may bring an account that another source has brought. Where two thirds of the bookings on
the days that both cover agree, by amount and within two days, and at least three different amounts are among them, that
is neither chance nor a standing order. Accounts that one source distinguishes are never asked about, but one that it no
longer reports it does not distinguish: a bridge that a bank was connected to again names its accounts anew. Under two
IBANs, which a merger of banks may give one account, all bookings on these days have to agree to the cent.
"""

from collections.abc import Collection, Sequence
from datetime import date, datetime, timedelta
from functools import cache, partial

import polars as pl
from msgspec import Struct

from storage import accounts, connections, journal
from storage.accounts import StoredAccount
from storage.connections import SHARED
from storage.database import Session, Transaction
from storage.importing import transfer_pairs
from storage.importing.lent_bookings import DAYS_APART_MAX, DatesByAmount, dates_by_amount, give_back, lend
from storage.importing.teller import Teller

AMOUNTS_MIN = 3  # different ones that agree
NEW_FOR = timedelta(days=30)  # how long an account is new: its first answers may hold next to nothing


class Lookalike(Struct, frozen=True, kw_only=True):
    """The account that a new one seems to be; `in_both` is the number of the new one's bookings that it has too."""

    account: StoredAccount
    in_both: int


def ask(teller: Teller, account_ids: Collection[str], *, missing: Collection[str] = ()) -> dict[str, Lookalike]:
    """Hide each new account (at most NEW_FOR old) of an import that seems to be another one, and ask its user whether
    it is, unless they were asked before, or another person shares it, who alone says who sees it. Returns, by the id of
    the new account, the one with which it has most bookings in common. `missing` are accounts that the source reported
    before and no longer does."""
    session, user_id, now = teller.session, teller.user.id, teller.now
    owned = {each.id: each for each in accounts.of_user(session, user_id)}
    if len(owned) < 2:
        return {}
    rows = session.rows(
        "SELECT id FROM accounts WHERE user_id = $1 AND id = ANY($2::TEXT[]) AND created_at > $3"
        " AND hidden_at IS NULL AND perhaps_same_as IS NULL"
        " AND id NOT IN (SELECT s.account_id FROM account_sources AS s JOIN connections AS c"
        " ON c.user_id = s.user_id AND c.id = s.connection_id WHERE s.user_id = $1 AND c.user_id = $1"
        " AND c.connector = ANY($4::TEXT[])) ORDER BY id",
        *(user_id, list(account_ids), now - NEW_FOR, list(SHARED)),
    )
    if not rows:
        return {}
    reported_apart = set(account_ids)
    if teller.is_live:
        reported_apart.update(connections.account_ids(session, user_id, teller.connection.id))
        reported_apart.difference_update(missing)
    dates_of = cache(partial(dates_by_amount, session, user_id))
    asked: dict[str, Lookalike] = {}
    for account in (owned[row["id"]] for row in rows):
        others = [each for each in owned.values() if each.id not in reported_apart and _may_be_one(account, each)]
        found = [(each, bookings_in_both(dates_of(account.id), dates_of(each.id))) for each in others]
        renamed = [each for each in owned.values() if each.id not in asked and account.difference(each) == "iban"]
        found += [(each, _agreeing_to_the_cent(session, user_id, account.id, each.id)) for each in renamed]
        alike = [Lookalike(account=each, in_both=in_both) for each, in_both in found if in_both]
        if alike:
            asked[account.id] = likest = max(alike, key=lambda each: each.in_both)
            accounts.ask_whether_same(session, user_id=user_id, account_id=account.id, other=likest.account.id, now=now)
    return asked


def hide(session: Transaction, *, user_id: str, account_id: str, is_hidden: bool, now: datetime) -> None:
    """Hide the account from lists and sums, or show it again. If its user was asked whether it is another account, this
    answers that it is not. Own transfers are paired anew, because its bookings may be sides of some now, and what
    changes is journalled."""
    lent = give_back(session, user_id)
    accounts.hide(session, user_id=user_id, account_id=account_id, since=now if is_hidden else None)
    moved = lend(session, user_id, lent, now=now)
    paired = journal.change_rows(transfer_pairs.pair_again(session, user_id), "modified")
    changes = pl.concat([moved, paired]).unique(maintain_order=True)
    journal.record(session, user_id=user_id, job_id="hide", changes=changes, now=now)


def bookings_in_both(one: DatesByAmount, other: DatesByAmount) -> int:
    """The number of bookings that two accounts have in common, by amount and within DAYS_APART_MAX; 0 if too few agree
    for the two to be one."""
    if not one or not other:
        return 0
    first = max(min(dates[0] for dates in each.values()) for each in (one, other))
    last = min(max(dates[-1] for dates in each.values()) for each in (one, other))
    agreed = {amount: _paired(dates, other.get(amount, ())) for amount, dates in one.items()}
    in_both = sum(agreed.values())
    of_shared_days = min(sum(first <= day <= last for dates in each.values() for day in dates) for each in (one, other))
    is_enough = in_both * 3 >= of_shared_days * 2 and sum(n > 0 for n in agreed.values()) >= AMOUNTS_MIN
    return in_both if is_enough else 0


def _paired(one: Sequence[date], other: Sequence[date]) -> int:
    """How many dates of the first list have one in the second within DAYS_APART_MAX, each used once; both are in
    order."""
    found = place = 0
    for day in one:
        while place < len(other) and other[place] < day - DAYS_APART_MAX:
            place += 1
        if place < len(other) and other[place] <= day + DAYS_APART_MAX:
            place, found = place + 1, found + 1
    return found


def _agreeing_to_the_cent(session: Session, user_id: str, one: str, other: str) -> int:
    """The number of bookings that two accounts have in common, by day, amount and the IBAN on the other side where both
    state one; 0 if one on the days that both cover is not among them (the last day aside, which may be incomplete), or
    fewer than AMOUNTS_MIN different amounts are."""
    told = (
        "(SELECT account_id, booking_date, amount, count(*) AS number, max(counterpart_iban) AS iban FROM transactions"
        " WHERE user_id = $1 AND account_id = ANY($2::TEXT[]) AND NOT is_adjusting_entry"
        " GROUP BY account_id, booking_date, amount) AS told"
    )
    spans = f"(SELECT min(booking_date) AS first, max(booking_date) AS last FROM {told} GROUP BY account_id) AS spans"
    rows = session.rows(
        "SELECT sum(number) FILTER (WHERE agrees) AS bookings FROM (SELECT booking_date < last AS is_before, amount,"
        " max(number) AS number, count(*) = 2 AND min(number) = max(number) AND coalesce(min(iban) = max(iban), TRUE)"
        f" AS agrees FROM {told} CROSS JOIN (SELECT max(first) AS first, min(last) AS last FROM {spans}) AS shared"
        " WHERE booking_date BETWEEN first AND last GROUP BY booking_date, last, amount) AS days"
        " HAVING bool_and(agrees OR NOT is_before) AND count(DISTINCT amount) FILTER (WHERE agrees) >= $3",
        *(user_id, [one, other], AMOUNTS_MIN),
    )
    return int(rows[0]["bookings"]) if rows else 0


def _may_be_one(account: StoredAccount, other: StoredAccount) -> bool:
    """Whether nothing stored about the two accounts distinguishes them; two IBANs always do."""
    return account.difference(other) is None and not (account.iban and other.iban)
