"""The evidence for a recurring payment: with a contract little is needed, without one a steady price.

The rules judge one group on one lattice, in plain Python: a thousand bookings have a hundred of these, and for so few
an expression of Polars takes longer to set up than to compute.
"""

from collections import Counter
from typing import NamedTuple

import polars as pl

from analytics.frames import among, frame_of
from analytics.recurring.frequencies import TWICE_MONTHLY
from analytics.recurring.groups import RANKS, RECENT_RANK
from analytics.recurring.prices import GAP_DAYS
from analytics.recurring.rhythm import DAYS_PER_MONTH, NEAR_DAYS, likely

# The rhythm (docs/recurring.md, "The calendar test")
FEW = 4  # with so few charges, all must be on the lattice
SHARE_MIN = 0.74
COVERAGE_MIN, COVERAGE_MIN_FAST, COVERAGE_MIN_FEW = 0.70, 0.66, 0.74
REPEATS_MAX = 1.25  # a slot filled twice more often shows a second contract than a double charge
GAP_SHARE_MIN, GAP_SHARE_MIN_LONG, LONG = 0.79, 0.74, 6
GAP_WOBBLE_DAYS_MAX = 1.25  # half the distance of the gaps' quartiles


class EvidenceNeeded(NamedTuple):
    """The evidence that a frequency needs: how much the amounts of a contract may vary (standard deviation by mean);
    how many charges a payment without contract needs (exact: when none was even a day off); and how far its typical
    charges may spread around the due days (standard deviation in days)."""

    contract_variation: float
    charges: int
    charges_exact: int
    spread_days: float


# The evidence (docs/recurring.md, "How much evidence")
RULES = {
    "weekly": EvidenceNeeded(0.15, 5, 4, 0.85),
    "biweekly": EvidenceNeeded(0.30, 4, 3, 1.4),
    TWICE_MONTHLY: EvidenceNeeded(0.30, 5, 4, 1.4),
    "monthly": EvidenceNeeded(0.60, 3, 3, 2.5),
    "two_monthly": EvidenceNeeded(0.45, 4, 3, 3.0),
    "quarterly": EvidenceNeeded(0.45, 3, 3, 4.0),
    "half_yearly": EvidenceNeeded(0.45, 3, 3, 6.0),
    "yearly": EvidenceNeeded(0.50, 2, 2, 18.0),
}
FAST, SLOW = ("weekly", "biweekly", TWICE_MONTHLY), ("quarterly", "half_yearly", "yearly")
TWICE_MONTHLY_FILLED, TWO_MONTHLY_FILLED = 4, 3  # slots with a charge
ANY_PAYEE = ("weekly", "biweekly", "monthly")  # the frequencies of a price found at any payee
EXACT_DAYS = 0.51  # two charges a day apart are each half a day from their middle
VARIED_SHARE_MIN, VARIED_REPEATS_MAX = 0.8, 1.2
PART_WHOLE, PART_NEARLY, PART_MOST, TOGETHER_MIN = 0.99, 0.95, 0.8, 0.85
EARLY_WORST_DAYS = 1.6  # two charges: the gap is about three days off at most
YEARLY_WORST_DAYS, YEARLY_STEP_MAX = 5.0, 0.11
ONCE_SLACK = 0.06  # a subscription is charged once a period; a habit is more often charged twice
BASKET_VARIATION, BASKET_PRICES = 0.2, 0.7  # a weekly box has extras, but few different prices
CLOCKWORK = 0.9  # share or coverage of a rhythm that hardly ever fails
STRICT_SPREAD_DAYS = 1.8  # a day of the month, posted after weekends, spreads no more
SECOND_TRY_CHARGES = 2  # further charges needed where one price of several, or one lattice of many, was picked out
FREE_AMOUNT_SPREAD_DAYS = ((9, 2.4), (6, 1.4), (4, 1.0))  # least charges, largest spread
CORE_FILLED_MIN, CORE_REPEATS_MAX, CHANCE_MAX = 0.85, 1.15, 0.001


STEADY = pl.col("constant") | pl.col("narrow")
BASKET = (pl.col("variation") <= BASKET_VARIATION) & pl.col("frequency").is_in(FAST)
WHOLE_PAYEE = pl.col("part") >= PART_WHOLE
ALONE = WHOLE_PAYEE & pl.col("lattice").is_in(["month", "year"])
ENOUGH = (pl.col("n") > 2) | pl.col("contract") | WHOLE_PAYEE  # a pair among other charges at the payee shows nothing


def worth_fitting(groups: pl.DataFrame) -> pl.DataFrame:
    """The likely pairs of group and lattice (a series of due days) whose amounts some rule below could accept if they
    keep to the calendar, each with a number (`fit`)."""
    enough = groups.filter(ENOUGH)
    return likely(enough, pl.col("contract") | STEADY | BASKET | ALONE).with_row_index("fit")


class ChargeGroup(NamedTuple):
    """What is known of a candidate group apart from the calendar (`candidate_groups`, `describe_groups`): `n` is its
    number of charges, `payee_n` and `mandate_n` are those of the whole payee and mandate, `part` is n / payee_n.
    `whole`: all prices are whole numbers. `prices` is the number of different ones, `changes` counts neighbouring
    charges of different price. `gaps_...` is the share of gaps between charges that fit the frequency."""

    group: int
    level: str
    n: int
    payee_id: int
    payee_n: int
    mandate_n: int | None
    whole: bool
    prices: int
    changes: int
    variation: float
    first_price: float
    last_price: float
    gaps_weekly: float
    gaps_biweekly: float
    gaps_monthly: float
    gaps_quarterly: float
    gap_wobble: float
    constant: bool
    narrow: bool
    contract: bool
    part: float

    @property
    def rank(self) -> int:
        """The group's rank, 0 for the coarsest: charges explained by a group of a lower rank cannot be claimed by one
        of a higher rank."""
        return RANKS[self.level]


class Fit(NamedTuple):
    """How a group fits a lattice, which is a series of due days, the slots (`rhythm.fits`): `share` is that of charges
    within tolerance, `slots` the number of due days from the first to the last charge, `filled` of those with a charge,
    `coverage` filled / slots, `repeats` the charges for each filled one. `near_...` count the charges at most 2.6 days
    off, and the slots that these fill."""

    fit: int
    group: int
    lattice: str
    frequency: str
    axis: str
    period: float
    tolerance_days: float
    unit_days: float
    period_days: float
    phase: float
    share: float
    slots: float
    filled: int
    coverage: float
    repeats: float
    spread_days: float
    worst_days: float
    near_n: int
    near_filled: int


class Candidate(NamedTuple):
    """A group with enough evidence, the lattice that it fits best, and how well."""

    group: ChargeGroup
    fit: Fit
    score: float

    @property
    def order(self) -> tuple[int, float, int, int]:
        """A sort key: candidates for the same charges are tried in this order, the coarsest first, then the best
        fitting one, then the one with the most charges."""
        return self.group.rank, -self.score, -self.group.n, self.group.group


def accept_fits(fits: pl.DataFrame, groups: pl.DataFrame) -> dict[int, Candidate]:
    """The groups with enough evidence for a recurring payment, each with its best fit, in the order in which they are
    tried."""
    steady = groups.lazy().filter(STEADY, pl.col("n") >= FEW, pl.col("gap_wobble") <= GAP_WOBBLE_DAYS_MAX)
    on_lattice = (pl.col("share") >= SHARE_MIN) & (pl.col("coverage") >= COVERAGE_MIN_FAST)
    is_steady = pl.col("group").is_in(among(steady.select("group").pipe(frame_of)["group"]))
    may_pass = on_lattice | (pl.col("near_filled") >= LONG) | is_steady
    passing = fits.lazy().filter(may_pass).select(Fit._fields).pipe(frame_of)
    fitted = groups.lazy().join(passing.lazy(), on="group", how="semi").select(ChargeGroup._fields).pipe(frame_of)
    by_id = {row[0]: ChargeGroup._make(row) for row in fitted.iter_rows()}
    judged = [(by_id[fit.group], fit) for fit in map(Fit._make, passing.iter_rows())]
    rhythmic = {group for group, fit in judged if group.level == "price" and is_rhythmic(group, fit)}
    explained = Counter[int]()
    for group in rhythmic:
        explained[group.payee_id] += group.n
    accepted: dict[int, Candidate] = {}
    for group, fit in judged:
        together = explained[group.payee_id] / group.payee_n
        if has_evidence(group, fit, together) or stands_out(group, fit):
            score = fit.share * fit.coverage / fit.repeats - fit.spread_days / fit.period_days
            known = accepted.get(fit.group)
            if known is None or (score, -fit.fit) > (known.score, -known.fit.fit):
                accepted[fit.group] = Candidate(group, fit, score)
    ranked = sorted(accepted.values(), key=lambda each: each.order)
    return {candidate.group.group: candidate for candidate in ranked}


def has_evidence(group: ChargeGroup, fit: Fit, together: float) -> bool:
    """Whether one of the rules accepts a regular group; `together` is the share of the payee's charges that belong to
    single prices with a rhythm of their own."""
    return (
        is_likely(group, fit)
        and is_regular(group, fit)
        and (
            has_contract_evidence(group, fit)
            or has_free_evidence(group, fit, together)
            or is_yearly(group, fit)
            or is_free_amount(group, fit)
            or is_early_pair(group, fit)
        )
    )


def is_likely(group: ChargeGroup, fit: Fit) -> bool:
    """Whether the charges are enough for a frequency that charges of another one may look like: two monthly contracts
    at one payee like one payment twice a month, a month that was missed like every two months, and some charges of a
    mandate like half-yearly ones."""
    if fit.frequency == TWICE_MONTHLY:
        varies = group.narrow and 2 * group.prices > group.n
        return (group.constant or varies) and fit.filled >= TWICE_MONTHLY_FILLED and fit.coverage >= CORE_FILLED_MIN
    if fit.frequency == "two_monthly":
        return fit.filled >= TWO_MONTHLY_FILLED
    return fit.frequency != "half_yearly" or group.mandate_n in (None, group.n)


def is_regular(group: ChargeGroup, fit: Fit) -> bool:
    """Whether the charges keep to the lattice, that is to its due days, or their gaps to its period."""
    return is_on_lattice(group, fit) or has_steady_gaps(group, fit)


def is_on_lattice(group: ChargeGroup, fit: Fit) -> bool:
    """Whether enough charges are within tolerance, few slots are missed, and hardly any is filled twice (one double
    charge is allowed)."""
    coverage_min = COVERAGE_MIN_FAST if fit.frequency in FAST else COVERAGE_MIN
    doubled_once = group.prices == 1 and group.n == fit.filled + 1 and fit.filled >= 2
    return (
        fit.share >= (1.0 if group.n <= FEW else SHARE_MIN)
        and fit.coverage >= (COVERAGE_MIN_FEW if fit.slots <= FEW else coverage_min)
        and (fit.repeats <= REPEATS_MAX or doubled_once)
    )


def has_steady_price(group: ChargeGroup) -> bool:
    """Whether at least four charges have so steady a price and so equal gaps that their gaps alone may show the rhythm;
    never for a group of the last months only."""
    is_steady = (group.constant or group.narrow) and group.gap_wobble <= GAP_WOBBLE_DAYS_MAX
    return is_steady and group.n >= FEW and group.rank < RECENT_RANK


def has_steady_gaps(group: ChargeGroup, fit: Fit) -> bool:
    """Whether the gaps of a steady price are right, although a moved billing day or a pause breaks the lattice."""
    return (
        fit.frequency in GAP_DAYS
        and has_steady_price(group)
        and getattr(group, f"gaps_{fit.frequency}") >= (GAP_SHARE_MIN_LONG if group.n >= LONG else GAP_SHARE_MIN)
    )


def is_once(group: ChargeGroup, fit: Fit) -> bool:
    """Whether there is hardly ever more than one charge a period."""
    return group.n - fit.filled <= 1 + ONCE_SLACK * group.n


def is_rhythmic(group: ChargeGroup, fit: Fit) -> bool:
    """Whether a group of at least three charges keeps a rhythm closely, hardly ever with two charges a period. More
    evidence is not asked for here."""
    spread_max = RULES[fit.frequency].spread_days
    return group.n >= 3 and fit.spread_days <= spread_max and is_once(group, fit) and is_regular(group, fit)


def is_equal(group: ChargeGroup, fit: Fit) -> bool:
    """Whether the amounts are equal enough without a contract: one price that hardly changes (for weekly and biweekly
    charges not one that swings between few prices), prices a few per cent apart, or those of a weekly box with extras
    that comes on its day."""
    fast, swings = fit.frequency in FAST, group.variation > BASKET_VARIATION
    basket = (
        fast
        and not swings
        and group.prices <= BASKET_PRICES * group.n
        and fit.share >= CLOCKWORK
        and group.n >= LONG
        and group.part >= PART_NEARLY
    )
    swinging = fast and swings and group.changes > group.prices
    return (group.constant and not swinging) or group.narrow or basket


def has_contract_evidence(group: ChargeGroup, fit: Fit) -> bool:
    """Whether a contract has enough charges: three (four in a finer group), but two if they are quarterly, yearly or of
    one price, or if the first of two is a part of a period's price. Its amounts may vary, within the limits of its
    frequency. False without a contract."""
    if not group.contract:
        return False
    charges_min = 2 if fit.frequency in SLOW or group.prices == 1 else 3 if group.rank == 0 else 4
    varied = (
        group.variation <= RULES[fit.frequency].contract_variation
        and fit.share >= VARIED_SHARE_MIN
        and fit.repeats <= VARIED_REPEATS_MAX
    )
    begun = (
        group.n == 2
        and group.mandate_n == 2
        and group.first_price < group.last_price
        and fit.worst_days <= EARLY_WORST_DAYS
        and fit.lattice in ("month", "quarter", "year")
    )
    return (group.n >= charges_min and (group.constant or group.narrow or varied)) or begun


def has_free_evidence(group: ChargeGroup, fit: Fit, together: float) -> bool:
    """Whether a payment without a contract has enough evidence: a steady price, once a period, on its day, and the more
    charges the less clear these are."""
    rule, fast, exact = RULES[fit.frequency], fit.frequency in FAST, fit.worst_days <= EXACT_DAYS
    alone = group.part >= PART_MOST or together >= TOGETHER_MIN
    one_price, once = group.prices == 1, is_once(group, fit)
    any_payee = group.level == "recent_price" and (group.whole or fit.frequency not in ANY_PAYEE)
    if fit.frequency == "yearly" or any_payee or not (one_price or once) or not is_equal(group, fit):
        return False
    needed = (
        (rule.charges_exact if exact else rule.charges)
        + (not alone)
        + SECOND_TRY_CHARGES * (not alone and not group.constant)
        + (group.whole and fit.spread_days > STRICT_SPREAD_DAYS)
        + (not one_price and group.constant and not group.narrow)
        + (fit.lattice in ("days28", "days30") and not exact)
        + SECOND_TRY_CHARGES * (fit.lattice == "business20")
    )
    is_recent = group.rank >= RECENT_RANK
    on_its_day = fit.spread_days <= (STRICT_SPREAD_DAYS if is_recent and not fast else rule.spread_days)
    if fast:
        kept = on_its_day and once and (fit.share >= CLOCKWORK or fit.coverage >= CLOCKWORK)
    else:
        kept = on_its_day or (group.n >= LONG and has_steady_gaps(group, fit))
    return kept and group.n >= needed


def is_yearly(group: ChargeGroup, fit: Fit) -> bool:
    """Whether the charges come a year apart, the last of about the same amount as the first, and nothing else at the
    payee."""
    return (
        fit.frequency == "yearly"
        and group.part >= PART_WHOLE
        and abs(group.last_price / group.first_price - 1) <= YEARLY_STEP_MAX
        and fit.worst_days <= YEARLY_WORST_DAYS
    )


def is_free_amount(group: ChargeGroup, fit: Fit) -> bool:
    """Whether a payment without a contract has enough evidence whatever its amounts: at least four charges, strictly on
    the day, nearly every month, and nothing else at the payee."""
    spread_max = next((days for n, days in FREE_AMOUNT_SPREAD_DAYS if group.n >= n), -1.0)
    return (
        fit.lattice == "month"
        and fit.share >= CLOCKWORK
        and fit.coverage >= CORE_FILLED_MIN
        and fit.spread_days <= spread_max
        and group.part >= PART_WHOLE
    )


def is_early_pair(group: ChargeGroup, fit: Fit) -> bool:
    """Whether there are two equal charges, not of a whole amount, a month or a quarter apart, and nothing else at the
    payee."""
    return (
        group.n == 2
        and group.payee_n == 2
        and group.prices == 1
        and not group.whole
        and fit.lattice in ("month", "quarter")
        and fit.worst_days <= EARLY_WORST_DAYS
    )


def stands_out(group: ChargeGroup, fit: Fit) -> bool:
    """Whether one price at a payee has a monthly core, of at least six months, so complete that purchases by chance
    would not fill it."""
    near = 2 * NEAR_DAYS / DAYS_PER_MONTH
    a_slot = 1 - (1 - near) ** (group.n / fit.slots)
    return (
        fit.lattice == "month"
        and group.prices == 1
        and fit.near_filled >= LONG
        and fit.near_filled >= CORE_FILLED_MIN * fit.slots
        and fit.near_n <= CORE_REPEATS_MAX * fit.near_filled
        and group.gaps_biweekly < 0.5
        and a_slot**fit.near_filled * DAYS_PER_MONTH <= CHANCE_MAX
    )
