"""The integrity of an account's ledger: opening balance plus bookings is closing balance, to the cent.

Figures do not show a booking that is missing, doubled or replaced by another one; balances do. An adjusting entry makes
figures right and explains nothing, so it counts as no booking here.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Literal

import polars as pl
from msgspec import Struct

from analytics.day_totals import ZERO, DayTotals
from analytics.source_windows import hole_before_window
from analytics.statements.balance_chain import ReportedBalance, between_balances
from analytics.statements.chain import Gap, StatementChain
from analytics.statements.ledger_periods import LedgerPeriod
from analytics.statements.told import DAY, told_statements

OLD_PENDING_DAYS = 14

Kind = Literal["gap", "statement_differs", "balance_differs", "adjusting_entry", "possible_duplicate", "old_pending"]
UNSOUND: frozenset[Kind] = frozenset({"gap", "statement_differs", "balance_differs"})


class LedgerEvidence(Struct, frozen=True, kw_only=True):
    """The evidence by which integrity is judged, for any accounts: STATED, MOVED, FORMER, FLAGGED and WAITING of
    frames.py."""

    stated: pl.DataFrame
    moved: pl.DataFrame
    former: pl.DataFrame
    flagged: pl.DataFrame
    waiting: pl.DataFrame


class LedgerProblem(Struct, frozen=True, kw_only=True):
    """A problem of the days from `first` to `last`. `amount` is what is missing or too much there (None where no
    balance shows it), or that of the booking concerned, whose id is in `transaction_ids`."""

    kind: Kind
    first: date
    last: date
    amount: Decimal | None
    transaction_ids: Sequence[str] = ()

    @property
    def is_unsound(self) -> bool:
        """Whether figures are wrong because of the problem."""
        return self.kind in UNSOUND


class AccountIntegrity(Struct, frozen=True, kw_only=True):
    """The integrity of one account: its periods sorted by last day, and its problems by kind and day."""

    account_id: str
    periods: Sequence[LedgerPeriod]
    problems: Sequence[LedgerProblem]

    @property
    def is_sound(self) -> bool:
        """Whether nothing contradicts the account's bookings."""
        return not any(problem.is_unsound for problem in self.problems)


def integrity(account_ids: Iterable[str], evidence: LedgerEvidence, *, today: date) -> list[AccountIntegrity]:
    """The integrity of each of the accounts, in their order."""
    return [_of_account(id_, evidence, today) for id_ in account_ids]


def _of_account(account_id: str, evidence: LedgerEvidence, today: date) -> AccountIntegrity:
    own = pl.col("account_id") == account_id
    stated, flagged, waiting = (frame.filter(own) for frame in (evidence.stated, evidence.flagged, evidence.waiting))
    moved = evidence.moved.filter(own)
    totals = DayTotals(moved, evidence.former.filter(own))
    told = told_statements(stated, moved)
    statements = StatementChain(told, moved)
    sums = list(dict.fromkeys(one.period(statements.extra[one]) for one in told))
    spoilt = [_statement_problem(each) for each in sums if each.difference]
    balances = _balances(stated, statements) if totals.is_any else []  # a depot reports its balance and never a booking
    chain = between_balances(balances, totals, waiting["amount"].to_list())
    missing = list(map(_gap, statements.gaps))
    differing = list(_differing_balances(chain, [*missing, *spoilt]))
    missing, differing = _with_unreported_days(stated, totals, chain, missing, differing)
    is_old = pl.col("booking_date") < today - timedelta(days=OLD_PENDING_DAYS)
    periods = sorted([*sums, *chain], key=lambda one: (one.last, one.first))
    problems = [
        *missing,
        *spoilt,
        *differing,
        *_of_bookings("adjusting_entry", flagged.filter("is_adjusting_entry")),
        *_of_bookings("possible_duplicate", flagged.filter("is_potential_duplicate")),
        *_of_bookings("old_pending", waiting.filter(is_old)),
    ]
    return AccountIntegrity(account_id=account_id, periods=periods, problems=problems)


def _balances(stated: pl.DataFrame, statements: StatementChain) -> list[ReportedBalance]:
    """The balance of each day, sorted by day: the last closing balance of its statements, else the balance that was
    reported last without a statement."""
    by_day: dict[date, ReportedBalance] = {}
    alone = stated.filter(
        pl.col("closing").is_not_null(), pl.col("closing_date").is_not_null(), pl.col("opening").is_null()
    )
    for row in alone.sort("received_at", "position").iter_rows(named=True):
        day = row["closing_date"]
        by_day[day] = ReportedBalance(day=day, balance=row["closing"], known_at=row["received_at"])
    by_day |= {balance.day: balance for balance in statements.balances()}
    return sorted(by_day.values(), key=lambda balance: balance.day)


def _gap(one: Gap) -> LedgerProblem:
    first, last = one.days
    return LedgerProblem(kind="gap", first=first, last=last, amount=one.amount)


def _statement_problem(one: LedgerPeriod) -> LedgerProblem:
    return LedgerProblem(kind="statement_differs", first=one.first, last=one.last, amount=one.difference)


def _differing_balances(chain: Iterable[LedgerPeriod], explained: Sequence[LedgerProblem]) -> Iterator[LedgerProblem]:
    """A problem for each difference that balances show, less what the `explained` problems of the same days account
    for; none where nothing is left."""
    for one in chain:
        within = [each for each in explained if one.first - DAY <= each.first and each.last <= one.last + DAY]
        amount = one.difference - sum((each.amount or ZERO for each in within), ZERO)
        if amount:
            yield LedgerProblem(kind="balance_differs", first=one.first, last=one.last, amount=amount)


def _with_unreported_days(
    stated: pl.DataFrame,
    totals: DayTotals,
    chain: Sequence[LedgerPeriod],
    missing: Sequence[LedgerProblem],
    differing: Sequence[LedgerProblem],
) -> tuple[list[LedgerProblem], list[LedgerProblem]]:
    """Two lists: the gaps, among them now the days that a source could no longer report when it was asked; and the
    differences that are not explained by such a gap.

    A gap has the amount by which the balances around it differ; there is none where they add up. Without balances, any
    booking of these days that became known later closes the gap.
    """
    unreported: list[LedgerProblem] = []
    others = list(differing)
    for hole in hole_before_window(stated):
        around = [one for one in chain if one.first <= hole.first and hole.last <= one.last]
        spanning = next((one for one in others if one.first <= hole.first and hole.last <= one.last), None)
        if spanning is not None:
            others.remove(spanning)
            unreported.append(LedgerProblem(kind="gap", first=hole.first, last=hole.last, amount=spanning.amount))
        elif not around and not totals.is_any_known_since(hole.met_at, hole.first, hole.last):
            unreported.append(LedgerProblem(kind="gap", first=hole.first, last=hole.last, amount=None))
    return sorted([*missing, *unreported], key=lambda one: (one.first, one.last)), others


def _of_bookings(kind: Kind, rows: pl.DataFrame) -> list[LedgerProblem]:
    """One problem of this kind for each of these bookings, by day and id."""
    ordered = rows.sort("booking_date", "id").select("id", "booking_date", "amount")
    return [
        LedgerProblem(kind=kind, first=day, last=day, amount=amount, transaction_ids=(id_,))
        for id_, day, amount in ordered.iter_rows()
    ]
