"""The projection of balances: expected recurring events, and a rest per day.

A closed form, so that anyone can check it: expected on day k = balance + the events until then + k times restPerDay.
The band around it contains four of five outcomes if the future is as uneven as the past.
"""

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from math import sqrt
from statistics import mean, median, pvariance, variance

from msgspec import Struct
from msgspec.structs import replace

from analytics.forecasting.ledgers import AccountLedger
from analytics.minor_digits import in_digits, minor_digits
from analytics.recurring.frequencies import CHARGES_A_YEAR
from analytics.recurring.history import Charge, history

YEAR_DAYS = 365.25
WINDOW_DAYS = 182  # the rest per day is the mean over these days
MONTH_DAYS = 30  # their net sums show whether a trend continues
MONTHS_BEFORE = 6
NEW_DAYS = 210  # an account that began with nothing fills up, so its trend says little for so long
PAY_DAYS = 62  # how far ahead the next pay is looked for: two months
BAND = 1.2816  # four of five outcomes of a normal distribution
AMOUNT_DOUBT = 0.03  # of the square of an event's amount: the event may come on another day, or not at all


class Stream(Struct, frozen=True, kw_only=True):
    """A recurring flow. Amounts of charges are positive; the expected amount is negative where money leaves the
    account."""

    name: str
    id: str | None  # its id in the list of recurring payments
    frequency: str
    expected: Decimal
    charges: Sequence[Charge]
    is_pay: bool = False
    first_due: date | None = None  # as in `analytics.recurring.history`
    asked: date | None = None  # as there


class NextPay(Struct, frozen=True, kw_only=True):
    """The day of the next expected pay, the recurring expenses due before it (positive), and what they leave of the
    balance."""

    day: date
    due: Decimal
    left: Decimal


class Event(Struct, frozen=True, kw_only=True):
    """A recurring payment or income expected on `day`, in nine of ten cases between `first` and `last`; or, with `name`
    None, the sum of all events of a month, of which these are the first and last projected day (`by_month`). `amount`
    is negative where money leaves, `variance` is that of the amount. `id` is that in the list of recurring payments,
    None if it is not listed. `is_overdue`: it was due by today and its account was asked since, so it is expected
    tomorrow. `is_pending`: it is certain, pending or booked for that day. `last_charge` is the id of the booking
    before it, or of what is certain."""

    day: date
    first: date
    last: date
    amount: Decimal
    variance: float
    name: str | None
    id: str | None
    is_overdue: bool
    is_pending: bool = False
    last_charge: str | None = None


class ForecastDay(Struct, frozen=True, kw_only=True):
    """The expected balance at the end of `day`, in four of five cases between `low` and `high`."""

    day: date
    expected: Decimal
    low: Decimal
    high: Decimal


class Projection(Struct, frozen=True, kw_only=True):
    """The projected days, at least one, and the events expected in them, sorted by day. `rest_per_day` is what the
    balance moves on each day besides: the past mean, less the part of the trend (of events and rest together) that is
    not expected to continue; `trend_weight` is the share that is, 0 to 1."""

    days: Sequence[ForecastDay]
    events: Sequence[Event]
    rest_per_day: Decimal
    trend_weight: float

    @property
    def lowest(self) -> ForecastDay:
        """The first of the days with the lowest expected balance."""
        return min(self.days, key=lambda day: day.expected)


def project(ledger: AccountLedger, streams: Iterable[Stream], *, days: int) -> Projection:
    """The projected balance of each of so many days after the ledger's day, with the expected events and the rest per
    day behind it, in the digits of the currency."""
    streams = list(streams)
    events = known_events(ledger, streams, days=days)
    span = min(WINDOW_DAYS, ledger.age)
    rest = _rest(ledger, streams, span)
    rest_a_day = float(sum(rest)) / span
    trend = sum(float(each.expected) * CHARGES_A_YEAR[each.frequency] for each in streams) / YEAR_DAYS + rest_a_day
    weight = trend_weight(ledger)
    rest_per_day = in_digits(Decimal(rest_a_day - (1 - weight) * trend), ledger.currency)
    weekly = variance([float(sum(rest[week : week + 7])) for week in range(0, span - 6, 7)])
    doubt = weekly / (7 * span) + (trend / 4) ** 2  # variance of the rest per day, and of the trend
    unit = Decimal(1).scaleb(-minor_digits(ledger.currency))
    days_ahead, expected, of_events, open_events = [], ledger.balance.quantize(unit), 0.0, list(events)
    for step in range(1, days + 1):
        day = ledger.day + timedelta(days=step)
        expected += rest_per_day
        while open_events and open_events[0].day <= day:
            event = open_events.pop(0)
            expected, of_events = expected + event.amount, of_events + event.variance
        half = in_digits(Decimal(BAND * sqrt(weekly * step / 7 + of_events + step**2 * doubt)), ledger.currency)
        days_ahead.append(ForecastDay(day=day, expected=expected, low=expected - half, high=expected + half))
    return Projection(days=days_ahead, events=events, rest_per_day=rest_per_day, trend_weight=weight)


def known_events(ledger: AccountLedger, streams: Iterable[Stream], *, days: int) -> list[Event]:
    """What is certain or recurs in so many days after the ledger's day, sorted by day; daily spending is no part of
    it."""
    streams = list(streams)
    return sorted(
        [*_pending(ledger, streams, days), *(event for stream in streams for event in _events(stream, ledger, days))],
        key=lambda event: (event.day, event.amount, event.name or ""),
    )


def next_pay(ledger: AccountLedger, streams: Iterable[Stream]) -> NextPay | None:
    """The next pay, None where none is expected within 62 days. `left` does not include other income and daily
    spending, nor what is due on the day of the pay."""
    streams = list(streams)
    of_pay = [stream for stream in streams if stream.is_pay]
    pay_ids = {charge.id for stream in of_pay for charge in stream.charges}
    tomorrow = ledger.day + timedelta(days=1)
    pay_days = [
        *(max(each.day, tomorrow) for each in ledger.pending if each.id in pay_ids),
        *(event.day for stream in of_pay for event in _events(stream, ledger, PAY_DAYS)),
    ]
    if not pay_days:
        return None
    day = min(pay_days)
    before = (day - ledger.day).days - 1
    going_out = [stream for stream in streams if stream.expected < 0]
    events = [*_pending(ledger, streams, before), *(each for one in going_out for each in _events(one, ledger, before))]
    due = -sum((each.amount for each in events if each.day < day and each.amount < 0), Decimal(0))
    due = in_digits(due, ledger.currency)
    return NextPay(day=day, due=due, left=in_digits(ledger.balance, ledger.currency) - due)


def by_month(projection: Projection) -> Projection:
    """The projection reduced to the ends of months and the last day, which still adds up; the events of each month
    become one without a name, on the last of its days."""
    ends = [day for day in projection.days if day is projection.days[-1] or (day.day + timedelta(days=1)).day == 1]
    first, events = projection.days[0].day, []
    for end in ends:
        within = [event for event in projection.events if first <= event.day <= end.day]
        if within:
            events.append(
                Event(
                    day=end.day,
                    first=first,
                    last=end.day,
                    amount=sum((event.amount for event in within), Decimal(0)),
                    variance=sum(event.variance for event in within),
                    name=None,
                    id=None,
                    is_overdue=False,
                )
            )
        first = end.day + timedelta(days=1)
    return replace(projection, days=ends, events=events)


def trend_weight(ledger: AccountLedger) -> float:
    """The share of the past trend that is expected to continue, 0 to 1: how well the mean of preceding months predicted
    each month's net; 0 for an account that began with nothing less than 210 days ago. The trend of people who spend
    whatever is left does not continue."""
    if ledger.opening == 0 and ledger.age < NEW_DAYS:
        return 0.0
    months = ledger.age // MONTH_DAYS
    nets = [float(net) for net in ledger.usual_sums(months * MONTH_DAYS)]
    sums = [sum(nets[first : first + MONTH_DAYS]) for first in range(0, len(nets), MONTH_DAYS)]
    preceding = [sums[place : place + MONTHS_BEFORE] for place in range(1, len(sums))]
    pairs = [(actual, mean(before)) for actual, before in zip(sums, preceding, strict=False)]
    scale = median(map(abs, sums)) ** 2
    squares = 2 * scale + sum(before**2 for _, before in pairs)
    if not squares:
        return 0.0
    return min(max((scale + sum(actual * before for actual, before in pairs)) / squares, 0.0), 1.0)


def _rest(ledger: AccountLedger, streams: Iterable[Stream], span: int) -> list[Decimal]:
    """The sum of each of the last `span` days, the latest first, without the charges of the streams."""
    rest, pending = ledger.usual_sums(span), {each.id for each in ledger.pending}
    for stream in streams:
        for charge in stream.charges:
            back = (ledger.day - charge.day).days
            if back < span and charge.id not in pending:
                rest[back] -= charge.amount.copy_sign(stream.expected)
    return rest


def _pending(ledger: AccountLedger, streams: Iterable[Stream], days: int) -> list[Event]:
    """What is certain in the coming days, tomorrow if its day has passed; with its stream's id, if it is in one."""
    tomorrow, until = ledger.day + timedelta(days=1), ledger.day + timedelta(days=days)
    ids = {charge.id: stream.id for stream in streams for charge in stream.charges}
    due = [(max(each.day, tomorrow), each) for each in ledger.pending]
    return [
        Event(
            day=day,
            first=day,
            last=day,
            amount=in_digits(each.amount, ledger.currency),
            variance=0.0,
            name=each.name,
            id=ids.get(each.id),
            is_overdue=False,
            is_pending=True,
            last_charge=each.id,
        )
        for day, each in due
        if day <= until
    ]


def _events(stream: Stream, ledger: AccountLedger, days: int) -> list[Event]:
    """The expected charges of a stream in the coming days; one that is overdue, or whose account was not asked since it
    was due, is expected tomorrow."""
    past = history(
        stream.charges,
        frequency=stream.frequency,
        currency=ledger.currency,
        today=ledger.day,
        incoming=stream.expected > 0,
        asked=stream.asked,
        coming_days=days,
        first_due=stream.first_due,
    )
    tomorrow, around = ledger.day + timedelta(days=1), timedelta(days=past.deviation)
    asked = stream.asked or ledger.day
    amount = in_digits(stream.expected, ledger.currency)
    doubt = AMOUNT_DOUBT * float(amount) ** 2 + pvariance([float(charge.amount) for charge in stream.charges])
    return [
        Event(
            day=max(due, tomorrow),
            first=max(due - around, tomorrow),
            last=max(due + around, tomorrow),
            amount=amount,
            variance=doubt,
            name=stream.name,
            id=stream.id,
            is_overdue=due < tomorrow and due <= asked and due not in past.unknown,
            last_charge=stream.charges[-1].id,
        )
        for due in [*past.unknown, *past.coming]
    ]
