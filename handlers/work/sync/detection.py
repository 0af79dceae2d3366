"""The recurring payments of a selection of accounts: read from the store, or detected and stored if they are not
there."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date, timedelta
from functools import partial

import polars as pl

from analytics.forecasting.flows import recurring_flows
from analytics.frames import CHARGES, SUBSCRIPTIONS
from analytics.recurring.added import include_added
from analytics.recurring.confirmations import DISMISSED, with_confirmations
from analytics.recurring.contract_ids import named_as_in
from analytics.recurring.detection import detect_both
from analytics.recurring.directions import OUTGOING, of_user, with_direction
from analytics.recurring.report import is_listed, over_on
from handlers.work.sync.recurring import recurring_news
from storage import accounts, detections, transactions
from storage.accounts import SelectedAccounts
from storage.database import Conflict, Database, Session, Transaction
from storage.recurring import added, decisions, known_until

EVIDENCE = timedelta(days=25 * 31)  # 25 months: yearly rhythms need two charges and the months around them

NO_CHARGES = pl.DataFrame(schema=CHARGES)
USERS_AT_ONCE = 10  # detected in one call, which takes about 20 ms


def subscriptions_of(database: Database, user_id: str, selected: SelectedAccounts, *, today: date) -> pl.DataFrame:
    """The streams of these accounts that GET /subscriptions lists, as analytics.frames.SUBSCRIPTIONS: those of
    `recurring_of` that were detected, are outgoing, and are current."""
    recurring = recurring_of(database, user_id, selected, today=today)
    return recurring.filter(is_current(today), pl.col("added_to").is_null(), direction=OUTGOING)[[*SUBSCRIPTIONS]]


def is_current(today: date) -> pl.Expr:
    """Whether a stream of `recurring_of` goes on, and was charged in the last six months and in two periods before
    `today`, or added by a person."""
    return goes_on() & (is_listed(pl.lit(today)) | pl.col("added_to").is_not_null())


def goes_on() -> pl.Expr:
    """Whether a stream of `recurring_of` is neither over nor dismissed, so that it is looked ahead to."""
    return ~pl.col("is_over") & (pl.col("confirmation") != DISMISSED)


def recurring_of(
    database: Database, user_id: str, selected: SelectedAccounts, *, today: date, session: Session | None = None
) -> pl.DataFrame:
    """Every stream (recurring payment) of these accounts, incoming and outgoing, ended or not, as SUBSCRIPTIONS with
    `direction`, `asked`, `is_over`, `confirmation`, `added_id` and `added_to`; those added by hand come last. `asked`
    is the day until which the bookings of its account are known, and a stream that is not over on that day is not. The
    result always belongs to the present data and day; what had to be detected for that is stored. Reads in `session` if
    one is given, so that a caller who reads the charges there too sees one state of the data."""
    reading = session or database
    found = with_direction(_streams(database, user_id, selected, today=today, session=session))
    found = with_confirmations(found, decisions.of_user(reading, user_id))
    currencies = {account.id: account.currency for account in selected.accounts}
    own = [each for each in added.of_user(reading, user_id) if each.account_id in currencies]
    ids = sorted({each.account_id for each in own})
    rows = transactions.charges(reading, user_id, since=today - EVIDENCE, account_ids=ids) if own else NO_CHARGES
    return _with_asked(include_added(found, own, rows, currencies, today), reading, user_id, selected, today)


def _with_asked(
    streams: pl.DataFrame, session: Session, user_id: str, selected: SelectedAccounts, today: date
) -> pl.DataFrame:
    known = known_until.of_accounts(session, user_id, selected.accounts, today=today)
    asked = pl.col("account_id").replace_strict(known, default=today, return_dtype=pl.Date)
    return streams.with_columns(asked=asked).with_columns(is_over=over_on() <= pl.col("asked"))


def _streams(
    database: Database, user_id: str, selected: SelectedAccounts, *, today: date, session: Session | None
) -> pl.DataFrame:
    """The streams that `detect_both` finds, read from the store, or detected and stored if they are not there."""
    kept_as = _storage_key(selected.ids)
    reading = session or database
    version, found = detections.find(reading, user_id, kept_as, day=today)
    if found is not None:
        return found
    found = detect_both(
        transactions.charges(reading, user_id, since=today - EVIDENCE, account_ids=selected.filter),
        _users_on([user_id], today),
    )
    if not selected.is_everything:
        everything = accounts.everything(reading, user_id)
        found = named_as_in(found, _streams(database, user_id, everything, today=today, session=session))
    _keep(database, user_id, kept_as, version, today, found)
    return found


def detect_after_import(database: Database, user_ids: Sequence[str], *, today: date) -> None:
    """Detect and store the streams of all accounts of these users, in one call for those for whom nothing up to date is
    stored, and record the events about what is new."""
    _detect(database, user_ids, today=today)
    for user_id in user_ids:
        database.atomically(partial(_tell_news, database=database, user_id=user_id, today=today))


def _detect(database: Database, user_ids: Sequence[str], *, today: date) -> None:
    outdated = {}
    for user_id in user_ids:
        kept_as = _storage_key([account.id for account in accounts.of_user(database, user_id)])
        version, known = detections.find(database, user_id, kept_as, day=today)
        if known is None:
            outdated[user_id] = kept_as, version
    if not outdated:
        return
    charges = pl.concat(transactions.charges(database, user_id, since=today - EVIDENCE) for user_id in outdated)
    found = detect_both(charges, _users_on(list(outdated), today))
    for user_id, (kept_as, version) in outdated.items():
        _keep(database, user_id, kept_as, version, today, of_user(found, user_id))


def _tell_news(session: Transaction, *, database: Database, user_id: str, today: date) -> None:
    session.hold(user_id)
    everything = accounts.everything(session, user_id)
    found = recurring_of(database, user_id, everything, today=today, session=session)
    recurring_news.record_news(session, user_id, found.filter(pl.col("added_to").is_null()), today=today)


def detect_for_new_day(
    database: Database, user_ids: Sequence[str], *, today: date, is_over: Callable[[], bool]
) -> None:
    """Detect the streams of these users for a day that has just begun, before anybody asks, and record events on what
    is new. Works on a few users at a time, so that requests come in between, and stops once `is_over`."""
    for first in range(0, len(user_ids), USERS_AT_ONCE):
        if is_over():
            return
        detect_after_import(database, user_ids[first : first + USERS_AT_ONCE], today=today)


def flows_of(
    database: Database,
    user_id: str,
    account_ids: Sequence[str],
    rows: pl.DataFrame,
    *,
    today: date,
    days: Sequence[date],
    session: Session,
) -> pl.DataFrame:
    """The recurring flows in and out of these accounts on each of the `days`, as `recurring_flows` finds them in `rows`
    (the accounts' bookings); read from the store, or found and stored, once for each state of the data and day."""
    kept_as = ["flows", *account_ids]
    version, found = detections.find(session, user_id, kept_as, day=today)
    if found is None:
        found = recurring_flows(rows, days)
        _keep(database, user_id, kept_as, version, today, found)
    return found


def _storage_key(account_ids: Sequence[str]) -> list[str]:
    """The key under which the streams of both directions of these accounts are stored."""
    return ["recurring", *account_ids]


def _users_on(user_ids: Sequence[str], today: date) -> pl.DataFrame:
    return pl.DataFrame({"user_id": list(user_ids)}, schema={"user_id": pl.String}).with_columns(today=pl.lit(today))


def _keep(database: Database, user_id: str, ids: Sequence[str], version: int, today: date, found: pl.DataFrame) -> None:
    """Store the result, unless another request has just stored it, under the version that was read before the rows: if
    an import came in between, that version is past and the result is never read."""
    with suppress(Conflict):  # another request stored the same result
        detections.keep(database, user_id, ids, data_version=version, day=today, found=found)
