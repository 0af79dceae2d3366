"""How often notices are right: labelled years of invented households, looked at on every day their bank is asked.

    python tests/benchmarks/notices.py [--households 500] [--quiet 100] [--seed 1] [--workers 2] [--page]

Each household has two years of bookings (invented_households): pay, contracts, cards, savings, and what is like an
incident but none (bills by use, tickets bought twice, cash desks that collect by mandate, refunds, prices in dollars).
In the second year things happen to it, each labelled with the day on which it can be known. Quiet households have money
and no incidents. A look calls what handlers.work.sync.notices.look calls, on the bookings until then; what it found
before is not told again. Right is a notice of the right kind about the right cause, by the day after it can be known.
Works on a few households at a time, and says how far it is; --page writes what it found into docs/notices.md.
"""

import argparse
import sys
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from textwrap import wrap
from typing import Any

import polars as pl

# a script's own folder comes first on the path, and there is an analytics.py beside this one
sys.path[0] = str(Path(__file__).resolve().parents[2])

from analytics.classification.classify import classify  # noqa: E402 - after the line above
from analytics.forecasting.flows import recurring_flows, streams_of  # noqa: E402
from analytics.forecasting.ledgers import AccountLedger  # noqa: E402
from analytics.frames import CHARGES, CLASSIFIABLE, TYPES  # noqa: E402
from analytics.notices import ahead, bookings, recurring  # noqa: E402
from analytics.notices.bookings import NOTICED, NoticedBooking, bookings_of, names_of, payee_of  # noqa: E402
from analytics.notices.found import Finding  # noqa: E402
from analytics.notices.recurring import PaidCharge, Payment  # noqa: E402
from analytics.recurring.detection import detect_both  # noqa: E402
from analytics.recurring.directions import INCOMING, MARK  # noqa: E402
from analytics.recurring.history import Charge  # noqa: E402
from analytics.recurring.payment import payments_in  # noqa: E402
from tests.benchmarks.invented_households import DAY, FIRST, LAST, YEAR, Household, Truth, balances_of  # noqa: E402

KINDS = ("overdraft.ahead", "debit.new", "charge.double", "price.raised", "income.late", "payment.failed")
IBAN = "DE02120300000000202051"
PIECE = 25  # households at once
PRECISION, RECALL = 0.95, 0.9  # what is asked of each kind
SAID = "Told by the next asking were"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "notices.md"


def frame_of(households: Sequence[Household]) -> pl.DataFrame:
    """The bookings of all households, classified as an import does."""
    names = {**NOTICED, **CLASSIFIABLE, "user_id": pl.String()}
    names = {name: TYPES.get(name, kind) for name, kind in names.items()}
    rows = [
        {name: row.get(name) for name in names if name not in ("type", "category")}
        for each in households
        for row in each.rows
    ]
    given = {name: kind for name, kind in names.items() if name not in ("type", "category")}
    found = classify(pl.DataFrame(rows, schema=given, orient="row"), own_ibans={IBAN: "checking"})
    return found.with_columns(pl.col("merchant_name")).select(*NOTICED)


class Looks:
    """The looks at some households, day by day, and what they told."""

    def __init__(self, households: Sequence[Household]) -> None:
        rows = frame_of(households).sort("booking_date", "id")
        self.rows = {id_: part for (id_,), part in rows.partition_by("user_id", as_dict=True).items()}
        self.bookings = {each.id: bookings_of(self.rows[each.id].iter_rows(named=True)) for each in households}
        self.days = {id_: [one.day for one in found] for id_, found in self.bookings.items()}
        self.by_id = {one.id: one for found in self.bookings.values() for one in found}
        self.charges = {id_: Charge(id=id_, day=one.day, amount=abs(one.amount)) for id_, one in self.by_id.items()}
        abroad = rows.filter(pl.col("original_amount").is_not_null())
        named = abroad.select("id", "original_amount", "original_currency").iter_rows()
        self.originals = {id_: (abs(amount), currency) for id_, amount, currency in named}
        self.pay = set(rows.filter(pl.col("amount") > 0, type="salary")["id"])
        self.own = set(rows.filter(pl.col("transfer_account_id").is_not_null())["id"])
        self.balances = {each.id: balances_of(each) for each in households}
        self.known = dict.fromkeys((each.id for each in households), 0)
        self.seen: defaultdict[str, dict[str, date]] = defaultdict(dict)
        self.stored: defaultdict[str, list[Finding]] = defaultdict(list)
        self.told: defaultdict[str, list[tuple[date, Finding]]] = defaultdict(list)

    def look(self, households: Sequence[Household], day: date) -> None:
        """Look at these households on this day."""
        until = pl.concat(self._rows(each.id, day - timedelta(days=775), day) for each in households)
        users = pl.DataFrame({"user_id": [each.id for each in households]}).with_columns(today=pl.lit(day))
        found = detect_both(until, users).partition_by("user_id", as_dict=True)
        short = self._short(households, until, day)
        for each in households:
            frames = [found[key] for id_ in (each.id, each.id + MARK) if (key := (id_,)) in found]
            payments = [one for frame in frames for one in payments_in(frame) if one.over_on > day]
            findings = [*self._findings(each, payments, day), *short.get(each.id, ())]
            for finding in findings:
                if not any(_is_same(finding, one) for one in self.stored[each.id]):
                    self.stored[each.id].append(finding)
                    if day != each.asked[0] and finding.interrupts:
                        self.told[each.id].append((day, finding))

    def _rows(self, id_: str, first: date, last: date) -> pl.DataFrame:
        begin, end = bisect_right(self.days[id_], first - DAY), bisect_right(self.days[id_], last)
        return self.rows[id_].slice(begin, end - begin).select(*CHARGES)

    def _between(self, id_: str, first: date, last: date) -> list[NoticedBooking]:
        return self.bookings[id_][bisect_right(self.days[id_], first - DAY) : bisect_right(self.days[id_], last)]

    def _findings(self, each: Household, payments: Sequence[Any], day: date) -> Iterator[Finding]:
        begin = day - timedelta(days=75)
        window = self._between(each.id, begin, day)
        known = [self._payment(one, day) for one in payments]
        for one in self._between(each.id, FIRST + DAY * self.known[each.id], begin - DAY):
            if one.amount < 0 and (one.type == "direct_debit" or one.creditor_id or one.mandate):
                names = names_of(one.creditor_id, one.mandate, payee_of(one.name))
                self.seen[each.id].update(dict.fromkeys(names, one.day))
        self.known[each.id] = (begin - FIRST).days
        seen, first = self.seen[each.id], {"giro": FIRST}
        yield from bookings.new_debits(window, today=day, seen=seen, first=first, ibans={"giro": IBAN})
        yield from bookings.failed_payments(window, today=day)
        names = set(bookings.suspects(window, today=day))
        if names:
            charged = [one for one in self._between(each.id, day - timedelta(days=425), day) if one.name in names
                       or one.day >= begin]  # fmt: skip
            yield from bookings.double_charges(charged, today=day, fixed=recurring.charges_of_one_price(known))
        yield from recurring.raised_prices(known, self.originals, today=day)
        yield from recurring.late_incomes(known, window, today=day)

    def _payment(self, one: Any, day: date) -> Payment:
        paid = [self.by_id[id_] for id_ in one.charge_ids]
        charges = [PaidCharge(each.id, each.day, abs(each.amount), "giro", bool(each.mandate)) for each in paid]
        return Payment(id=one.id, name=one.merchant_name, account_id="giro", currency="EUR", frequency=one.frequency,
                       is_incoming=one.direction == INCOMING, is_sure=paid[-1].type == "salary", asked=day,
                       charges=charges)  # fmt: skip

    def _taken_at_most(self, id_: str, day: date) -> Decimal:
        """As the product, by every booking instead of each amount once."""
        begin = day - ahead.RECENT
        older = [(one.name, one.amount) for one in self._between(id_, day - ahead.YEAR, begin) if one.amount < 0]
        return ahead.taken_at_most(self._between(id_, begin + DAY, day), dict.fromkeys(older))

    def _short(self, households: Sequence[Household], until: pl.DataFrame, day: date) -> dict[str, list[Finding]]:
        doubtful = [each for each in households if self.balances[each.id][day] < self._taken_at_most(each.id, day)]
        if not doubtful:
            return {}
        rows = until.filter(pl.col("user_id").is_in([each.id for each in doubtful]))
        streams = streams_of(recurring_flows(rows, [day]), self.charges, {}, asked={}, salaries=self.pay)
        found = {}
        for each in doubtful:
            ledger = AccountLedger(currency="EUR", day=day, balance=self.balances[each.id][day], first=FIRST,
                                   bookings=99, opening=each.opening, moved={})  # fmt: skip
            short = ahead.shortfall(ledger, streams[each.id, day], limit=Decimal(0), own=self.own)
            notice = ahead.overdraft_ahead("giro", ledger, short, elsewhere=Decimal(0))
            found[each.id] = [notice] if notice is not None else []
        return found


def _is_same(one: Finding, other: Finding) -> bool:
    if one.kind != other.kind:
        return False
    if one.cause_day is not None and not set(one.transaction_ids).isdisjoint(other.transaction_ids):
        return True
    is_one = not set(one.subject.splitlines()).isdisjoint(other.subject.splitlines())
    return is_one and abs((one.day - other.day).days) <= max(one.within, other.within)


def _is_right(each: Household, day: date, finding: Finding, truth: Truth) -> bool:
    if finding.kind != truth.kind or day > each.first_asked(truth.until):
        return False
    if finding.kind == "overdraft.ahead":
        is_soon = truth.day <= each.first_asked(day + DAY)
        return is_soon and abs((finding.day - date.fromisoformat(truth.cause)).days) <= (6 if each.pay_days else 10)
    return truth.cause.lower().split()[0] in finding.arguments["name"].lower() and truth.day <= day


class Score:
    """How many notices of each kind were right, wrong and missing, and how many a household heard a week."""

    def __init__(self) -> None:
        self.right, self.wrong, self.missed = Counter[str](), Counter[str](), Counter[str]()
        self.a_week: list[float] = []
        self.quiet = 0
        self.lines: list[str] = []

    def add(self, other: "Score") -> None:
        """Count what another score counts, too."""
        for mine, more in ((self.right, other.right), (self.wrong, other.wrong), (self.missed, other.missed)):
            mine.update(more)
        self.a_week += other.a_week
        self.quiet += other.quiet

    def count(self, each: Household, looks: Looks) -> None:
        """Count what was told to a household. What begins before or ends after the year is not labelled."""
        begin, end = YEAR + timedelta(days=30), LAST - timedelta(days=14)
        if each.is_quiet:
            self.quiet += len(looks.told[each.id])
            for day, finding in looks.told[each.id]:
                self.lines.append(f"quiet {each.id} {each.name} {day} {finding.kind} {finding.subject}")
            return
        self.a_week.append(len(looks.told[each.id]) / 52)
        truths = [*each.truths, *each.shortfalls(looks.balances[each.id])]
        left = [one for one in looks.told[each.id] if begin <= one[1].day <= end]
        for truth in truths:
            if begin <= (date.fromisoformat(truth.cause) if truth.kind == "overdraft.ahead" else truth.day) <= end:
                hit = next((one for one in left if _is_right(each, *one, truth)), None)
                (self.right if hit else self.missed)[truth.kind] += 1
                if hit:
                    left.remove(hit)
                else:
                    self.lines.append(f"missed {each.id} {each.name} {truth.kind} {truth.cause} {truth.day}")
        for day, finding in left:
            self.wrong[finding.kind] += 1
            said = dict(finding.arguments)
            self.lines.append(f"wrong {each.id} {each.name} {day} {finding.kind} {finding.day} {said}")

    def text(self) -> str:
        """What the page says of it."""
        kinds = [
            f"`{kind}` {self.right[kind]} of {self.right[kind] + self.missed[kind]}"
            + (f" ({self.wrong[kind]} wrong)" if self.wrong[kind] else "")
            for kind in KINDS
        ]
        said = (
            f"{SAID} {', '.join(kinds)}. Quiet ones heard {self.quiet or 'nothing'}. The median is a notice in"
            f" {1 / (median(self.a_week) or 1):.0f} weeks, the most {max(self.a_week):.1f} a week."
        )
        return "\n".join(wrap(said, 120, break_on_hyphens=False))

    def below(self) -> list[str]:
        """The kinds that are not right as often as is asked."""
        return [
            kind
            for kind in KINDS
            if self.right[kind] < PRECISION * (self.right[kind] + self.wrong[kind])
            or self.right[kind] < RECALL * (self.right[kind] + self.missed[kind])
        ]


def score_of(some: Sequence[tuple[int, int, bool]]) -> Score:
    """The score of households (number, seed, whether it is quiet), of all days of their second year."""
    households = [Household(number, seed, is_quiet=is_quiet) for number, seed, is_quiet in some]
    looks, score = Looks(households), Score()
    for day in (YEAR + DAY * back for back in range(365)):
        if today := [each for each in households if day in each.asked]:
            looks.look(today, day)
    for each in households:
        score.count(each, looks)
    return score


def main() -> None:
    """Make the households, look at them through their second year, and print how often notices were right."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("--households", 500), ("--quiet", 100), ("--seed", 1), ("--workers", 2)):
        given.add_argument(name, type=int, default=default)
    given.add_argument("--wrong", action="store_true", help="print what was wrong and what was missed")
    given.add_argument("--page", action="store_true", help="write what it found into docs/notices.md")
    asked = given.parse_args()
    every = [
        *((number, asked.seed, False) for number in range(asked.households)),
        *((1000 + number, asked.seed, True) for number in range(asked.quiet)),
    ]
    pieces = [every[first : first + PIECE] for first in range(0, len(every), PIECE)]
    score, done = Score(), 0
    with get_context("spawn").Pool(asked.workers) as workers:
        for piece, found in zip(pieces, workers.imap(score_of, pieces), strict=True):
            score.add(found)
            done += len(piece)
            print(*found.lines if asked.wrong else (), sep="\n", end="\n" if asked.wrong and found.lines else "")
            print(f"{done} of {len(every)}: {dict(score.right)} wrong {dict(score.wrong)} missed {dict(score.missed)}"
                  f" quiet {score.quiet}", flush=True)  # fmt: skip
    print(score.text(), "", f"below what is asked: {score.below() or 'none'}", sep="\n")
    if asked.page:
        before, _, _ = PAGE.read_text().partition(SAID)
        PAGE.write_text(f"{before}{score.text()}\n")


if __name__ == "__main__":
    main()
