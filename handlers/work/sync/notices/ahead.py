"""Whether a user's accounts last until the next income: the basis of a forecast, for the few that may not."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal

import polars as pl

from analytics.forecasting.flows import recurring_flows, streams_of
from analytics.notices.ahead import RECENT, YEAR, Shortfall, overdraft_ahead, shortfall, taken_at_most
from analytics.notices.bookings import NoticedBooking
from analytics.notices.found import Finding
from analytics.recurring.history import Charge
from handlers.work.sync.forecasts.series import Series, all_rows, series_of
from storage import transactions
from storage.accounts import StoredAccount
from storage.database import Session

DAY = timedelta(days=1)
NOT_LOOKED_AT = ("credit_card", "loan", "securities", "membership", "building_savings")


def runs_short(
    session: Session,
    user_id: str,
    accounts: Sequence[StoredAccount],
    window: Sequence[NoticedBooking],
    *,
    today: date,
    since: date,
    asked: Mapping[str, date],
    dismissed: Collection[str],
    lent: Collection[str],
) -> Iterator[tuple[Shortfall, Finding | None]]:
    """The shortfall of each account that does not last until the next income, within ten days with its notice. Those
    that hold more than known payments can take (`taken_at_most`) are not looked at. `window` are the bookings of the
    last months, `since` is the day from which recurring payments are looked for, `asked` the day until which each
    account is known, `dismissed` are charges of payments that do not count; what is on accounts that others share
    (`lent`) helps nobody else."""
    looked_at = [each for each in accounts if each.kind not in NOT_LOOKED_AT and each.balance is not None]
    taken = _taken_at_most(session, user_id, window, today)
    doubtful = [each for each in looked_at if (each.balance or 0) - each.limit < taken.get(each.id, 0)]
    if not doubtful:
        return
    ids = [each.id for each in doubtful]
    rows, waiting = (
        transactions.charges(session, user_id, since=since, account_ids=ids, pending=pending)
        for pending in (False, True)
    )
    histories = transactions.histories(session, user_id, ids, until=today)
    series, _ = series_of(doubtful, rows, waiting, histories, today)
    if series:
        own = [each for each in looked_at if each.id not in lent]
        limits = {each.id: each.limit for each in doubtful}
        yield from _of_series(series, pl.concat([rows, waiting]), own, limits, today, asked, dismissed)


def _taken_at_most(
    session: Session, user_id: str, window: Sequence[NoticedBooking], today: date
) -> Mapping[str, Decimal]:
    recent: defaultdict[str, list[NoticedBooking]] = defaultdict(list)
    older: defaultdict[str, list[tuple[str | None, Decimal]]] = defaultdict(list)
    for each in window:
        if each.day > today - RECENT:
            recent[each.account_id].append(each)
    for row in transactions.went_out(session, user_id, since=today - YEAR, until=today - RECENT + DAY):
        older[row["account_id"]].append((row["name"], row["amount"]))
    return {id_: taken_at_most(recent[id_], older[id_]) for id_ in {*recent, *older}}


def _of_series(
    series: Sequence[Series],
    rows: pl.DataFrame,
    accounts: Sequence[StoredAccount],
    limits: Mapping[str, Decimal],
    today: date,
    asked: Mapping[str, date],
    dismissed: Collection[str],
) -> Iterator[tuple[Shortfall, Finding | None]]:
    flows = recurring_flows(all_rows(series), [today])
    counted = flows.filter(~pl.col("charge_ids").list.eval(pl.element().is_in(list(dismissed))).list.any())
    named = rows.select("id", "booking_date", pl.col("amount").abs()).iter_rows()
    charges = {id_: Charge(id=id_, day=day, amount=amount) for id_, day, amount in named}
    salaries = set(rows.filter(pl.col("amount") > 0, type="salary")["id"])
    streams = streams_of(counted, charges, {}, asked=asked, salaries=salaries)
    own = set(rows.filter(pl.col("transfer_account_id").is_not_null())["id"])
    for each in series:
        short = shortfall(each.ledger, streams[each.key, today], limit=limits[each.key], own=own)
        if short is not None:
            elsewhere = [
                account.balance
                for account in accounts
                if account.id != each.key and account.currency == each.ledger.currency and account.balance is not None
            ]
            money = sum((balance for balance in elsewhere if balance > 0), Decimal(0))
            yield short, overdraft_ahead(each.key, each.ledger, short, elsewhere=money)
