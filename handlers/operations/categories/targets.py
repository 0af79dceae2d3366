"""PUT and GET /targets: amounts to compare with what is spent at a place in a month or a year."""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

import polars as pl

from analytics.classification.facts import CATEGORIES, LEAVES, category_of
from analytics.classification.leaves import OWN_TRANSFER
from analytics.classification.rules import ChosenCategory
from analytics.currencies import NO_RATES
from analytics.messages import Message
from analytics.minor_digits import in_digits, minor_digits
from analytics.periods import InvalidMonth, last_day, month_of
from analytics.searching.comparison import Span
from analytics.searching.totals import expenses_by_place
from auth.principal import Principal
from handlers import json_shapes
from handlers.names import Json
from handlers.operations.categories.own import own_categories_for
from handlers.operations.categories.places import place_named
from handlers.operations.reports import currency_of, unconverted_header
from handlers.operations.selection import covered_accounts, owner_of, selected_or_all
from handlers.web.errors import BadRequest
from handlers.web.request import Answer, Request
from handlers.work.cache.user_data import Need, UserData
from handlers.work.services import Services
from storage.annotations import targets
from storage.annotations.annotation import OwnCategory
from storage.annotations.targets import AMOUNT_MAX, TARGETS_MAX, Target, TooManyTargets
from storage.database import Transaction
from storage.transactions import Selection

TOO_MANY = Message("from: at most {limit} targets, those of earlier months counted", limit=TARGETS_MAX)
COMMON = (*CATEGORIES, *LEAVES)  # places that everybody has


class Compared(NamedTuple):
    """A target, where it holds (`place`), the month or year that is looked at (`span`), and what was spent there in it,
    in the target's currency."""

    target: Target
    place: ChosenCategory
    span: Span
    spent: Decimal


def set_target(services: Services, request: Request, *, body: Mapping[str, Any]) -> Json:
    """Set the target at a place from a month on, until another one is set there, and return it; an amount of 0 ends it.
    Raises BadRequest."""
    user_id, first = owner_of(request), _month("from", body["from"])

    def work(session: Transaction) -> Json:
        place = place_named(body, own_categories_for(session, request.principal) if body.get("ownCategoryId") else {})
        amount = Decimal(str(body["amount"]))
        return _shape(put(services, session, request.principal, place, amount, body["period"], first), place)

    return services.alone(user_id, work)


def list_targets(services: Services, request: Request, *, month: str | None) -> Answer:
    """List the targets that hold in a month (this month if none is given), with what was spent in that month or its
    year and what is left, which is negative if more was spent."""
    first = _month("month", month) if month else services.clock.today().replace(day=1)
    found, left_out = comparisons(services, request.principal, first)
    shapes = [
        _shape(each.target, each.place)
        | {
            "spent": json_shapes.money(each.spent, each.target.currency),
            "left": json_shapes.money(each.target.amount - each.spent, each.target.currency),
        }
        | json_shapes.span(each.span)
        for each in found
    ]
    return Answer(body={"month": first.isoformat()[:7], "targets": shapes}, headers=unconverted_header(left_out))


def put(
    services: Services,
    session: Transaction,
    caller: Principal,
    place: ChosenCategory,
    amount: Decimal,
    period: str,
    first: date,
) -> Target:
    """Store a target from the month on that begins on the day `first`, in the currency of the figures over all accounts
    that the caller may read, and return it; `period` is "month" or "year". The caller has already held the user
    (`Transaction.hold`). Raises BadRequest for too many digits, a too large amount, or too many targets."""
    user_id = caller.user_id
    reading = services.reader.read(session, user_id, Need.ACCOUNTS)
    currency = currency_of(services, reading, covered_accounts(reading.accounts, caller))
    if amount != in_digits(amount, currency):
        raise BadRequest(
            "amount: amounts in {currency} have {digits} digits after the point",
            currency=currency,
            digits=minor_digits(currency),
        )
    if amount > AMOUNT_MAX:
        raise BadRequest("amount: at most {limit}", limit=AMOUNT_MAX)
    target = Target(code_of(place), first, amount, currency, period)
    try:
        targets.put(session, user_id, target)
    except TooManyTargets as error:
        raise BadRequest(TOO_MANY) from error
    return target


def comparisons(services: Services, caller: Principal, month: date) -> tuple[list[Compared], set[str]]:
    """The targets that hold in the month beginning on this day, as far as the caller may see them, with the expenses of
    that month or, for the target of a year, of its year; and the currencies without a rate, whose bookings are left
    out. The thirteen categories come first, then the finer ones, then a user's own by name."""
    held = targets.of_month(services.of(caller.user_id), caller.user_id, month)
    if caller.figures_only:  # such a grant may see only monthly sums of the thirteen categories
        held = [target for target in held if target.place in CATEGORIES]
    found: list[Compared] = []
    left_out: set[str] = set()
    if not held:
        return found, left_out
    has_own = any(target.place not in COMMON for target in held)
    with services.reader.open(caller.user_id, Need.LIST | Need.WORDS if has_own else Need.LIST) as reading:
        own = _visible_own_categories(reading, caller) if has_own else {}
        owned = {id_: own_id for id_, (own_id, _) in reading.words.owned.items()} if has_own else {}
        spans = {(_span(target, month), target.currency) for target in held}
        spent = {each: _expenses_in(services, reading, caller, *each, owned) for each in spans}
    by_place = {target.place: target for target in held}
    for target in (by_place[code] for code in (*COMMON, *own) if code in by_place):
        span = _span(target, month)
        expenses, currencies = spent[span, target.currency].get(target.place, (Decimal(0), ()))
        found.append(Compared(target, place_of(target.place, own), span, expenses))
        left_out.update(currencies)
    return found, left_out


def code_of(place: ChosenCategory) -> str:
    """The code under which a target stores a place: the id of the own category, else the finer category, else the
    category."""
    category, leaf, own_id = place
    return own_id or leaf or category


def place_of(code: str, own: Mapping[str, OwnCategory]) -> ChosenCategory:
    """The category, finer and own category for the code that a target stores."""
    if code in own:
        return ChosenCategory(own[code].category, own[code].detailed_category, code)
    return ChosenCategory(category_of(code), code) if code in LEAVES else ChosenCategory(code)


def _month(name: str, text: str) -> date:
    try:
        return month_of(text)
    except InvalidMonth as error:
        raise BadRequest("{name}: must be a calendar month written YYYY-MM", name=name) from error


def _visible_own_categories(reading: UserData, caller: Principal) -> Mapping[str, OwnCategory]:
    """The user's own categories by id; for a caller who may not read all accounts, only those on bookings they may
    read."""
    words = reading.words

    def is_seen(own_id: str) -> bool:
        return caller.is_whole or any(caller.covers(words.accounts[id_]) for id_ in words.in_own(own_id))

    return {id_: each for id_, each in words.own.items() if is_seen(id_)}


def _expenses_in(
    services: Services, reading: UserData, caller: Principal, span: Span, currency: str, owned: Mapping[str, str]
) -> Mapping[str, tuple[Decimal, Sequence[str]]]:
    """The expenses in this span for each place, by its code, as totals count them, with the currencies without a rate
    among its bookings; `owned` maps bookings to their own categories."""
    selected, parts = selected_or_all(reading.accounts, None, caller), reading.parts
    rows = reading.search_rows(Selection(account_ids=selected.filter, date_from=span.first, date_to=span.last))
    own = pl.col("id").replace_strict(owned, default=None, return_dtype=pl.String)
    rows = rows.with_columns(own_category_id=own if owned else pl.lit(None, pl.String))
    if not caller.is_whole:
        as_known = pl.col("detailed_category").replace({OWN_TRANSFER: None})
        rows, parts = rows.with_columns(as_known), parts.with_columns(as_known)
    spent = expenses_by_place(
        rows,
        selection=selected.ids,
        currency=currency,
        rates=services.rates if (rows["currency"] != currency).any() else NO_RATES,
        parts=parts,
    )
    return {place: (expenses, currencies) for place, expenses, currencies in spent.iter_rows()}


def _span(target: Target, month: date) -> Span:
    if target.period == "year":
        return Span(month.replace(month=1), month.replace(month=12, day=31))
    return Span(month, last_day(month))


def _shape(target: Target, place: ChosenCategory) -> Json:
    category, leaf, own_id = place
    return {
        "category": category,
        "detailedCategory": leaf,
        "ownCategoryId": own_id,
        "amount": json_shapes.money(target.amount, target.currency),
        "currency": target.currency,
        "period": target.period,
        "from": target.first_month.isoformat()[:7],
    }
