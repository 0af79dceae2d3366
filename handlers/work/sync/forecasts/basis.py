"""Collects the basis of a forecast from one state of the data; recurring flows are found once and stored."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date

import polars as pl
from msgspec import Struct

from analytics.forecasting.back_test import origins
from analytics.forecasting.ledgers import Reason
from handlers.work.sync.detection import EVIDENCE, flows_of
from handlers.work.sync.forecasts.series import Series, all_rows, by_currency, series_of
from storage import accounts, transactions
from storage.accounts import SelectedAccounts
from storage.database import Database, Session
from storage.recurring import known_until


class Basis(Struct, frozen=True, kw_only=True):
    """The basis of a forecast: the series by account and by currency, the accounts left out with the reason, the
    bookings (CHARGES) with the pending ones, for each account the day until which they are known, and the recurring
    flows of each series, as of today and of each of the `origins` of earlier forecasts."""

    of_accounts: Sequence[Series]
    of_currencies: Mapping[str, Series]
    left_out: Sequence[tuple[str, Reason]]
    rows: pl.DataFrame
    asked: Mapping[str, date]
    flows: pl.DataFrame


def basis_of(database: Database, user_id: str, selected: SelectedAccounts, *, today: date, session: Session) -> Basis:
    """The basis of a forecast of these accounts, read in `session`; recurring flows that had to be found are stored
    through `database`."""
    since = origins(today)[-1] - EVIDENCE
    rows, waiting = (
        transactions.charges(session, user_id, since=since, account_ids=selected.filter, pending=pending)
        for pending in (False, True)
    )
    histories = transactions.histories(session, user_id, selected.ids, until=today)
    asked = known_until.read(session, user_id, selected.accounts, today=today).until(selected.accounts, today)
    of_accounts, left_out = series_of(selected.accounts, rows, waiting, histories, today)
    of_currencies = by_currency(of_accounts)
    known = {each.key: each for each in [*of_accounts, *of_currencies.values()]}
    flows = flows_of(
        database,
        user_id,
        selected.ids,
        all_rows(known.values()),
        today=today,
        days=[today, *origins(today)],
        session=session,
    )
    return Basis(
        of_accounts=of_accounts,
        of_currencies=of_currencies,
        left_out=left_out,
        rows=pl.concat([rows, waiting]),
        asked=asked,
        flows=flows,
    )


def find_ahead(
    database_of: Callable[[str], Database], user_ids: Sequence[str], *, today: date, is_over: Callable[[], bool]
) -> None:
    """Find and store the flows for forecasts of all accounts of these users, before they ask; stops once `is_over`."""
    for user_id in user_ids:
        if is_over():
            return
        database = database_of(user_id)
        with database.transaction() as session:
            everything = accounts.everything(session, user_id)
            basis_of(database, user_id, everything, today=today, session=session)
