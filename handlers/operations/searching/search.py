"""GET /transactions/search and /transactions/totals: the rows that match filters, and the sums over them."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any, cast, get_args

import polars as pl

from analytics.cashflow import first_booking
from analytics.classification.leaves import OWN_TRANSFER
from analytics.frames import among, frame_of
from analytics.periods import last_day
from analytics.refunds import NO_CATEGORY, refund_ids
from analytics.searching.comparison import CompareWith, Comparison, Span, comparison, whole_months
from analytics.searching.filters import OfHistory, Sort, in_order, matching_rows
from analytics.searching.history import with_flag
from analytics.searching.per_period import NEXT, usual, whole_periods
from analytics.searching.totals import (
    KEYS_MAX,
    NO_TAGS,
    Group,
    Key,
    Order,
    Sums,
    Totals,
    key_name,
    top_groups,
    totals,
)
from auth.principal import Principal
from handlers import json_shapes
from handlers.names import Json
from handlers.operations.categories.finer import is_included, leaf_as_seen
from handlers.operations.reports import money_of, unconverted_header
from handlers.operations.searching.filters import Filters
from handlers.operations.selection import covered_accounts, listed_values, selected_or_all
from handlers.operations.transactions import links, transactions_json
from handlers.operations.words.row_words import ASKED, DETAILED, OF_WORDS, asks_for_words, with_words
from handlers.web.errors import BadRequest, Forbidden
from handlers.web.request import Answer, Request
from handlers.work.cache.user_data import UserData
from handlers.work.services import Services
from storage.accounts import SelectedAccounts
from storage.transactions import Selection

KEYS: Sequence[Key] = get_args(Key)
MONTHLY_SUMS = (
    "This connection shows figures only: totals are those of whole months, by category, type, account, month or year"
)
"""The consent page promises monthly sums only to a person who keeps bookings from an app."""
TOO_FEW = "This connection shows figures only: fewer than three transactions are no total"
BOOKED = ("status", "booked")
SHOWS_NO_BOOKING = {"account_ids", "category", "date_from", "date_to", "direction", "categories", "types", "counted"}
LEAST_OF_FIGURES = 3  # rows of a group there: of two, whoever knows one knows the other
KEYS_OF_FIGURES = {"category", "type", "account", "month", "year"}


def search_transactions(
    services: Services,
    request: Request,
    reading: UserData,
    *,
    sort: Sort,
    page: int,
    per_page: int,
    include: str | None = None,
    **parameters: Any,
) -> Answer:
    """List one page of the rows that match the filters, in the order of `sort`; each says whether it is booked or
    pending."""
    caller = request.principal
    filters = Filters(**parameters)
    filters.check(caller, include)
    selected = selected_or_all(reading.accounts, filters.account_ids, caller)
    rows, query = _read(reading, caller, filters, selected, filters.selection(selected, caller)), filters.query()
    currency, rates = money_of(services, reading, selected.accounts, rows)
    matching = matching_rows(rows, query, selection=selected.ids, currency=currency, rates=rates, parts=reading.parts)
    whole = in_order(matching, sort).select("kept_at", "is_pending").pipe(frame_of)
    offset = min((page - 1) * per_page, whole.height)
    of_page = whole[offset : offset + per_page].rows()
    pagination = json_shapes.pagination(page=page, per_page=per_page, total=whole.height)
    return Answer(
        body=transactions_json(_shapes(reading, of_page, caller, include), pagination),
        headers={"link": links(request, page=page, last=max(1, pagination["pageCount"]))},
    )


def sum_transactions(
    services: Services,
    request: Request,
    reading: UserData,
    *,
    group_by: str | None,
    limit: int,
    compare_with: CompareWith | None,
    sort: Order = "expenses",
    **parameters: Any,
) -> Answer:
    """Sum the rows that match the filters of a search (decisions 13 to 16, 19): in all, by group, and compared with
    another span. Raises Forbidden where a grant of figures only would learn of single bookings."""
    caller, today = request.principal, services.clock.today()
    filters, keys = Filters(**parameters), _keys(group_by)
    filters.check(caller, ASKED if OF_WORDS.intersection(keys) else None)
    if sort == "change" and compare_with is None:
        raise BadRequest("sort: change needs compareWith")
    if caller.figures_only:
        _refuse_bookings(parameters, keys, today)
    selected = selected_or_all(reading.accounts, filters.account_ids, caller)
    selection, query = filters.selection(selected, caller), filters.query()
    known_from = partial(first_booking, reading.figures, selected.ids)
    asked, spans = _spans(filters, compare_with, caller, today=today, known_from=known_from)
    read = [spans.span, spans.earlier] if spans is not None else [asked]
    parts = [_read(reading, caller, filters, selected, _limited_to(selection, each)) for each in read]
    parts, split = _with_keys(reading, caller, keys, parts)
    currency, rates = money_of(services, reading, selected.accounts, pl.concat(part[["currency"]] for part in parts))
    refunds, tags = _refunds(reading, filters, selected, parts), _tags(reading) if "tag" in keys else NO_TAGS
    now, *before = (
        totals(
            rows,
            query,
            refunds=refunds,
            selection=selected.ids,
            currency=currency,
            group_by=keys,
            rates=rates,
            shift=spans.shift if spans is not None and place else None,
            parts=split,
            tags=tags,
        )
        for place, rows in enumerate(parts)
    )
    if caller.figures_only and any(0 < part.whole.count < LEAST_OF_FIGURES for part in (now, *before)):
        raise Forbidden(TOO_FEW)
    shape = partial(json_shapes.sums, currency=currency, with_days=not caller.figures_only)
    body = {"currency": currency, **shape(now.whole), "leftOut": now.left_out}
    if keys:
        least = LEAST_OF_FIGURES if caller.figures_only else 1
        said = _names_of_words(reading, caller) if OF_WORDS.intersection(keys) else {}
        earlier = before[0] if before else None
        body |= _groups(now, earlier, shape, said, limit=limit, least=least, order=sort)
        if len(keys) == 1 and keys[0] in NEXT and not caller.figures_only:
            first = max(filter(None, (filters.date_from, known_from())), default=today)
            body["perPeriod"] = _per_period(now, first, min(filters.date_to or today, today), currency)
    if asked is not None:
        body["span"] = json_shapes.span(spans.span if spans is not None else asked)
        body["compared"] = {**json_shapes.span(spans.earlier), **shape(before[0].whole)} if spans is not None else None
    return Answer(body=body, headers=unconverted_header({name for part in (now, *before) for name in part.unconverted}))


def found_ids(
    services: Services, reading: UserData, caller: Principal, filters: Filters, selected: SelectedAccounts
) -> list[str]:
    """The ids of the transactions that a search of these accounts with these filters finds, in no order."""
    rows = _read(reading, caller, filters, selected, filters.selection(selected, caller))
    currency, rates = money_of(services, reading, selected.accounts, rows)
    matching = matching_rows(
        rows, filters.query(), selection=selected.ids, currency=currency, rates=rates, parts=reading.parts
    )
    ids: list[str] = matching.select("id").pipe(frame_of)["id"].to_list()
    return ids


def _read(
    reading: UserData, caller: Principal, filters: Filters, selected: SelectedAccounts, selection: Selection
) -> pl.DataFrame:
    """Return the rows of the selection that are booked, pending or both, as `filters.status` asks, and have the tag,
    own category and flag of the history that the filters name; the latest booking date first. The caller applies the
    other filters (`Filters.query`), that on OTHER always, which a row without a category has in figures alone
    (decision 17)."""
    if selection.category == NO_CATEGORY:
        selection = selection._replace(category=None)
    states = [is_pending for is_pending, other in ((False, "pending"), (True, "booked")) if filters.status != other]
    parts = [reading.search_rows(selection, pending=is_pending) for is_pending in states]
    if filters.search_in and filters.search:
        found = pl.concat(
            [*(part["id"] for part in parts), pl.Series(reading.words.saying(filters.search), dtype=pl.String)]
        )
        every = [reading.search_rows(selection._replace(search=None), pending=is_pending) for is_pending in states]
        parts = [part.filter(pl.col("id").is_in(among(found))) for part in every]
    ids = filters.ids(reading, caller)
    if ids is not None:
        parts = [part.filter(pl.col("id").is_in(ids)) for part in parts]
    if filters.flag in get_args(OfHistory):
        flagged = _with_flag(reading, caller, cast(OfHistory, filters.flag), selected)
        parts = [part.filter(pl.col("id").is_in(among(flagged))) for part in parts]
    return parts[0] if len(parts) == 1 else pl.concat(parts).sort("booking_date", "id", descending=True)


def _with_flag(reading: UserData, caller: Principal, flag: OfHistory, selected: SelectedAccounts) -> pl.Series:
    covered = covered_accounts(reading.accounts, caller)
    return with_flag(
        flag,
        reading.entries.bookings.filter(pl.col("account_id").is_in([account.id for account in covered])),
        reading.entries.refunds(selected.ids),
        selection=selected.ids,
        own=[account.iban for account in covered if account.iban],
    )


def _refunds(
    reading: UserData, filters: Filters, selected: SelectedAccounts, parts: Sequence[pl.DataFrame]
) -> pl.Series:
    """The ids of the booked refunds of the selected accounts and, if pending rows are asked for, of the refunds among
    those; whether a pending row is a refund is decided by the user's booked rows, too."""
    booked = reading.entries.refunds(selected.ids)
    if filters.status == "booked":
        return booked
    pending = pl.concat(parts).filter("is_pending")
    return pl.concat([booked, refund_ids(pending, reading.figures, selection=selected.ids)])


def _shapes(reading: UserData, rows: Sequence[tuple[int, bool]], caller: Principal, include: str | None) -> list[bytes]:
    """The JSON of these rows, each given by its place and whether it is pending."""
    leaf, is_detailed = partial(leaf_as_seen, caller=caller), is_included(include)
    shown = {
        is_pending: reading.listed(
            [place for place, of_row in rows if of_row == is_pending],
            pending=is_pending,
            leaf=leaf if is_detailed else None,
        )
        for is_pending in {is_pending for _, is_pending in rows}
    }
    found = [
        b'%b,"status":"%b"}' % (shown[is_pending][place][:-1], b"pending" if is_pending else b"booked")
        for place, is_pending in rows
    ]
    return with_words(found, reading, caller, None if is_detailed else leaf) if asks_for_words(include) else found


def _keys(group_by: str | None) -> list[Key]:
    keys: Any = listed_values("groupBy", group_by, KEYS)
    if len(keys) > KEYS_MAX:
        raise BadRequest("groupBy: must name at most {limit} keys", limit=KEYS_MAX)
    return list(keys)


def _refuse_bookings(parameters: dict[str, Any], keys: Sequence[Key], today: date) -> None:
    """Raise Forbidden for parameters whose answer would reveal single bookings or payees."""
    said = {name for name, value in parameters.items() if value not in (None, False) and (name, value) != BOOKED}
    first, last = parameters["date_from"], parameters["date_to"]
    # Bookings may be dated ahead: of two future days, the difference would be what is booked between them
    ends_within = last is not None and last not in (today, last_day(last))
    if said - SHOWS_NO_BOOKING or set(keys) - KEYS_OF_FIGURES or (first and first.day != 1) or ends_within:
        raise Forbidden(MONTHLY_SUMS)


def _spans(
    filters: Filters,
    compare_with: CompareWith | None,
    caller: Principal,
    *,
    today: date,
    known_from: Callable[[], date | None],
) -> tuple[Span | None, Comparison | None]:
    """The span that is compared, as asked for, and both spans as they are compared; None where nothing is, or nothing
    earlier is known."""
    if compare_with is None:
        return None, None
    if filters.date_from is None or filters.date_to is None:
        raise BadRequest("compareWith: needs dateFrom and dateTo")
    asked = Span(filters.date_from, filters.date_to)
    spans = comparison(asked, compare_with, today=today, known_from=known_from())
    if caller.figures_only and spans is not None and not all(map(whole_months, (spans.span, spans.earlier))):
        raise Forbidden(MONTHLY_SUMS)
    return asked, spans


def _with_keys(
    reading: UserData, caller: Principal, keys: Sequence[Key], rows: Sequence[pl.DataFrame]
) -> tuple[list[pl.DataFrame], pl.DataFrame]:
    """The rows, and the parts of split bookings, with the columns that these keys need, as the caller may know them."""
    found, split = list(rows), reading.parts
    if DETAILED in keys and not caller.is_whole:
        as_known = pl.col("detailed_category").replace({OWN_TRANSFER: None})
        found, split = [part.with_columns(as_known) for part in found], split.with_columns(as_known)
    if "ownCategory" in keys:
        found = [part.with_columns(own_category_id=_owned(reading)) for part in found]
    return found, split


def _limited_to(selection: Selection, span: Span | None) -> Selection:
    return selection._replace(date_from=span.first, date_to=span.last) if span is not None else selection


def _owned(reading: UserData) -> pl.Expr:
    """The id of the own category of each row that is no part."""
    owned = {id_: own_id for id_, (own_id, _leaf) in reading.words.owned.items()}
    if not owned:
        return pl.lit(None, pl.String)
    return pl.col("id").replace_strict(owned, default=None, return_dtype=pl.String)


def _tags(reading: UserData) -> pl.DataFrame:
    """The tags of all bookings, each on a row of its own, written as words are compared (NO_TAGS)."""
    pairs = [(id_, tag) for id_, said in reading.words.by_id.items() for tag in said.all_tags]
    return pl.DataFrame(pairs, schema=NO_TAGS.schema, orient="row")


def _names_of_words(reading: UserData, caller: Principal) -> Mapping[Key, Mapping[str, str]]:
    """What the user calls their own categories, by id, and their tags, as they are compared."""
    tags = {tag: name for tag, (name, _count) in reading.words.names(caller.covers).items()}
    return {"ownCategory": {id_: each.name for id_, each in reading.words.own.items()}, "tag": tags}


def _per_period(now: Totals, first: date, last: date, currency: str) -> Json | None:
    """As JSON, what a usual one of the periods that lie wholly between these days comes to; None where there are
    none."""
    (kind,) = now.group_by
    periods = whole_periods(kind, first, last)
    if not periods:
        return None
    rows = now.groups.iter_rows(named=True)
    figures = {row["key_0"] if kind != "year" else date(row["key_0"], 1, 1): row for row in rows}

    def shape(name: str) -> Json:
        found = usual({day: row[name] for day, row in figures.items()}, periods)
        return {
            "mean": json_shapes.money(found.mean, currency),
            "median": json_shapes.money(found.median, currency),
            "outliers": [key_name(kind, day) for day in found.outliers],
            "meanWithoutOutliers": json_shapes.money(found.mean_of_others, currency),
        }

    return {"periods": len(periods), "expenses": shape("expenses"), "income": shape("income")}


def _groups(
    now: Totals,
    before: Totals | None,
    shape: Callable[[Sums], Json],
    said: Mapping[Key, Mapping[str, str]],
    *,
    limit: int,
    least: int,
    order: Order,
) -> Json:
    """As JSON, at most `limit` groups of at least `least` rows (the latest ones, in order of time, where the first key
    is a time; else those with the highest expenses first), and the sums of all others as one; each with its sums in
    `before`, if an earlier span is compared."""

    def shape_group(group: Group) -> Json:
        return {**shape(group.sums), **({} if group.compared is None else {"compared": shape(group.compared)})}

    def keys_of(group: Group) -> dict[Key, str | None]:
        named = zip(now.group_by, group.named, strict=True)
        return {key: said[key].get(value, value) if key in said and value else value for key, value in named}

    groups, rest = top_groups(now, before, limit=limit, least=least, order=order)
    return {
        "groups": [
            {
                "key": " ".join(filter(None, keys.values())),
                "keys": keys,
                **shape_group(group),
            }
            for group, keys in ((each, keys_of(each)) for each in groups)
        ],
        "rest": shape_group(rest),
    }
