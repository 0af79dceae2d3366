"""The recurring payments of a selection of accounts: read from the store, or detected and stored if they are not
there.

They are found for data, not for a day: what was found stays until the data change, or a booking comes due that lay in
the future. What a day changes is counted when they are read (analytics.recurring.payment).
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date, timedelta
from functools import partial
from io import StringIO
from itertools import chain

import msgspec
import polars as pl

from analytics.forecasting.flows import recurring_flows
from analytics.frames import CHARGES, SUBSCRIPTIONS
from analytics.recurring.added import include_added
from analytics.recurring.confirmations import with_confirmations
from analytics.recurring.contract_ids import named_as_in
from analytics.recurring.detection import detect_both
from analytics.recurring.directions import of_user
from analytics.recurring.payment import RecurringPayment, payments_in
from handlers.work.sync.notices.look import look
from handlers.work.sync.recurring import recurring_news
from storage import accounts, detections, transactions
from storage.accounts import SelectedAccounts
from storage.changes import first_answers
from storage.changes.first_answers import Recurring
from storage.database import Conflict, Database, Session, Transaction, state_in
from storage.detections import Detected
from storage.recurring import added, decisions, known_until

EVIDENCE = timedelta(days=25 * 31)  # 25 months: yearly rhythms need two charges and the months around them

NO_CHARGES = pl.DataFrame(schema=CHARGES)
USERS_AT_ONCE = 10  # detected in one call, which takes about 20 ms

_PAYMENTS = msgspec.json.Decoder(list[RecurringPayment])


def recurring_in(
    database: Database,
    user_id: str,
    selected: SelectedAccounts,
    *,
    told: Recurring | None,
    state: int | None,
    today: date,
    session: Session | None = None,
) -> Sequence[RecurringPayment]:
    """What `recurring_of` finds, from what the user's first answers have `told` in this state, if these are all
    accounts; where they have not, they do from then on."""
    if not selected.is_everything or state is None:
        return recurring_of(database, user_id, selected, today=today, session=session)
    known = told.on(today, selected.accounts) if told is not None else None
    if known is not None:
        return known
    found = find_recurring(database, user_id, selected, today=today, session=session)
    with suppress(Conflict):  # somebody changes the data, and what was found may soon be past
        first_answers.remember(database, user_id, state, found)
    return _on(found, selected, today)


def recurring_of(
    database: Database, user_id: str, selected: SelectedAccounts, *, today: date, session: Session | None = None
) -> Sequence[RecurringPayment]:
    """Every recurring payment of these accounts, incoming and outgoing, ended or not; those added by hand come last. A
    payment that is not over on the day until which the bookings of its account are known is not. The result always
    belongs to the present data; what had to be detected for that is stored. Reads in `session` if one is given, so that
    a caller who reads the charges there too sees one state of the data."""
    return _on(find_recurring(database, user_id, selected, today=today, session=session), selected, today)


def _on(found: Recurring, selected: SelectedAccounts, today: date) -> Sequence[RecurringPayment]:
    told = found.on(today, selected.accounts)
    assert told is not None, "found for other accounts or another day"
    return told


def find_recurring(
    database: Database, user_id: str, selected: SelectedAccounts, *, today: date, session: Session | None
) -> Recurring:
    """The recurring payments of these accounts, as `recurring_of` says, with the days for which they are true."""
    reading = session or database
    found, version, first, last = _detected(database, user_id, selected, today=today, session=session)
    found = with_confirmations(found, decisions.of_user(reading, user_id))
    currencies = {account.id: account.currency for account in selected.accounts}
    own = [each for each in added.of_user(reading, user_id) if each.account_id in currencies]
    ids = sorted({each.account_id for each in own})
    rows = transactions.charges(reading, user_id, since=today - EVIDENCE, account_ids=ids) if own else NO_CHARGES
    known = known_until.read(reading, user_id, selected.accounts, today=today)
    return Recurring(
        data_version=version,
        account_ids=selected.ids,
        first=first,
        last=min(last, known.last),
        payments=include_added(found, own, rows, currencies, today),
        known=known,
    )


def _detected(
    database: Database, user_id: str, selected: SelectedAccounts, *, today: date, session: Session | None
) -> tuple[Sequence[RecurringPayment], int, date, date]:
    """The payments that `detect_both` finds, read from the store, or detected and stored if they are not there; the
    data version, and the first and last day for which they are true."""
    kept_as = _storage_key(selected.ids)
    reading = session or database
    version, kept = detections.find(reading, user_id, kept_as, day=today)
    if kept is not None:
        return _PAYMENTS.decode(kept.text), version, kept.first, kept.last
    charges = transactions.charges(reading, user_id, since=today - EVIDENCE, account_ids=selected.filter)
    found: Sequence[RecurringPayment] = payments_in(detect_both(charges, _users_on([user_id], today)))
    if not selected.is_everything:
        everything = accounts.everything(reading, user_id)
        whole, *_ = _detected(database, user_id, everything, today=today, session=session)
        found = named_as_in(user_id, found, whole)
    last = _last_day(charges, today)
    _keep(database, user_id, kept_as, version, Detected(_text(found), today, last))
    return found, version, today, last


def _last_day(charges: pl.DataFrame, today: date) -> date:
    """The day before the first one after today of which there is a booking already."""
    later = charges["booking_date"].filter(charges["booking_date"] > today).min()
    assert later is None or isinstance(later, date)
    return later - timedelta(days=1) if later is not None else date.max


def _text(found: Sequence[RecurringPayment]) -> str:
    return msgspec.json.encode(found).decode()


def detect_after_import(database: Database, user_ids: Sequence[str], *, today: date) -> None:
    """Detect and store the recurring payments of all accounts of these users, in one call for those for whom nothing up
    to date is stored; record the events about what is new, and have first answers tell of them."""
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
    streams = detect_both(charges, _users_on(list(outdated), today))
    for user_id, (kept_as, version) in outdated.items():
        found = payments_in(of_user(streams, user_id))
        last = _last_day(charges.filter(user_id=user_id), today)
        _keep(database, user_id, kept_as, version, Detected(_text(found), today, last))


def _tell_news(session: Transaction, *, database: Database, user_id: str, today: date) -> None:
    session.hold(user_id)
    everything = accounts.everything(session, user_id)
    found = find_recurring(database, user_id, everything, today=today, session=session)
    first_answers.remember(session, user_id, state_in(session, user_id), found)
    detected = [each for each in _on(found, everything, today) if each.added_to is None]
    ids = chain.from_iterable(each.charge_ids for each in detected)
    charges = transactions.rows_by_id(session, user_id, ids)
    recurring_news.record_news(session, user_id, detected, charges, today=today)
    asked = found.known.until(everything.accounts, today)
    look(session, user_id, everything.accounts, detected, charges, asked, today=today, since=today - EVIDENCE)


def detect_for_new_day(
    database: Database, user_ids: Sequence[str], *, today: date, is_over: Callable[[], bool]
) -> None:
    """Record events on what a day that has just begun brings for these users, before anybody asks. Works on
    a few users at a time, so that requests come in between, and stops once `is_over`."""
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
    version, kept = detections.find(session, user_id, kept_as, day=today)
    if kept is not None:
        return pl.read_json(StringIO(kept.text), schema=SUBSCRIPTIONS)
    found = recurring_flows(rows, days)
    _keep(database, user_id, kept_as, version, Detected(found.write_json(), today, today))
    return found


def _storage_key(account_ids: Sequence[str]) -> list[str]:
    """The key under which the streams of both directions of these accounts are stored."""
    return ["payments", *account_ids]


def _users_on(user_ids: Sequence[str], today: date) -> pl.DataFrame:
    return pl.DataFrame({"user_id": list(user_ids)}, schema={"user_id": pl.String}).with_columns(today=pl.lit(today))


def _keep(database: Database, user_id: str, ids: Sequence[str], version: int, found: Detected) -> None:
    """Store the result, unless another request has just stored it, under the version that was read before the rows: if
    an import came in between, that version is past and the result is never read."""
    with suppress(Conflict):  # another request stored the same result
        detections.keep(database, user_id, ids, data_version=version, found=found)
