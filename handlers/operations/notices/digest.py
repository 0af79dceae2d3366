"""The digest of a week or month: what the interface answers about it, in sentences."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import orjson

from analytics.messages import Amount, Message
from analytics.notices.hours import day_of, digest_period, next_digest
from auth.principal import PAGE, Principal
from auth.scopes import ALL_SCOPES
from handlers.languages import catalogue
from handlers.names import Json
from handlers.notice_sentences import visible_name
from handlers.operations.notices import letters
from handlers.operations.notices.letters import Said
from handlers.operations.overview import answer_of
from handlers.web.request import Operation, Request
from handlers.work.services import Services
from storage.boundary import contain
from storage.database import StoreUnavailable, Transaction
from storage.notices.ways import deliveries, settings, targets
from storage.notices.ways.deliveries import NoticeDelivery
from storage.notices.ways.settings import DueDigest

BEFORE = 3  # periods, whose mean is compared with
LISTED = 3  # of each thing
PIECE = 50  # people at once
LATE_MAX = timedelta(days=2)
GAP = "ledger.wrong"
AHEAD = {"weekly": timedelta(days=7), "monthly": timedelta(days=31)}

Ask = Callable[..., Json]

log = logging.getLogger("bankdata.notices")


def begin_due(services: Services, now: datetime) -> None:
    """Add the letters of the digests that are due, each once per period, to the targets of their people; none for one
    that is more than two days late."""
    for due in settings.due_digests(services.everybody, now=now, limit=PIECE):
        own = services.of(due.user_id)
        with contain(log, "a digest waits a day after an error", passes=(StoreUnavailable,)):
            own.atomically(partial(_begin, due=due, now=now))
            continue
        own.atomically(partial(settings.take_digest, due=due, next_at=now + timedelta(days=1)))


def _begin(session: Transaction, *, due: DueDigest, now: datetime) -> None:
    wanted = settings.find(session, due.user_id)
    if wanted is None:
        return
    zone = ZoneInfo(wanted.time_zone)
    if not settings.take_digest(session, due, next_at=next_digest(now, zone, wanted.digest)):
        return
    if now - due.digest_at > LATE_MAX:
        return
    first, last = digest_period(due.digest_at, zone, wanted.digest)
    until = (due.digest_at + LATE_MAX).isoformat()
    said = {"digest": wanted.digest, "first": first.isoformat(), "last": last.isoformat(), "until": until}
    for each in targets.of_user(session, due.user_id, state="working"):
        deliveries.add(
            session,
            due.user_id,
            target_id=each.id,
            what="digest",
            now=now,
            content=said,
            id_=f"{wanted.digest}-{last}",
        )


def said_of(services: Services, operations: Mapping[str, Operation], due: NoticeDelivery) -> Said | None:
    """What the letter of a digest says; None if there is nothing to say, or it is too late. Reads the user's data,
    and so is no part of a transaction."""
    own, said = services.of(due.user_id), due.content
    wanted, target = settings.find(own, due.user_id), targets.find(own, due.user_id, due.target_id)
    if (
        wanted is None
        or wanted.digest != said["digest"]
        or target is None
        or services.clock.now().isoformat() > said["until"]
    ):
        return None
    told = [kind for kind, how in wanted.kinds.items() if how == "digest"]
    first, last = (date.fromisoformat(said[name]) for name in ("first", "last"))
    ask = asking(operations, due.user_id, wanted.language)
    zone = ZoneInfo(wanted.time_zone)
    found = lines(ask, said["digest"], first, last, language=wanted.language, told=told, zone=zone)
    return letters.of_digest(said["digest"], found if target.whole_sentences else ()) if found else None


def asking(operations: Mapping[str, Operation], user_id: str, language: str) -> Ask:
    """A function that asks operations as the user's own page does: by operationId, path and arguments."""
    caller = Principal(
        user_id=user_id, client_id=PAGE, scopes=frozenset(ALL_SCOPES), grant_id=None, has_subscription=True
    )
    request = Request(caller=caller, method="GET", path="", query="", headers={}, client_address="", language=language)

    def ask(name: str, path: str, **given: Any) -> Json:
        answer: Json = orjson.loads(answer_of(operations[name], request, path, given).body)
        return answer

    return ask


def lines(
    ask: Ask, digest: str, first: date, last: date, *, language: str, told: Sequence[str] = (), zone: ZoneInfo
) -> list[Message]:
    """What happened in the period from the first day to the last one, by the days of this zone; `told` are the kinds of
    notices of which the person is told here. Empty if nothing moved and nothing is to be told."""
    ids = ",".join(each["id"] for each in ask("listAccounts", "/accounts")["accounts"])
    notices = [
        Message("{text}", text=each["text"])
        for each in ask("listNotices", "/notices", state="open", limit=200)["notices"]
        if each["kind"] in told and first <= day_of(datetime.fromisoformat(each["createdAt"]), zone) <= last
    ]
    now: Json = _sums(ask, ids, first, last) if ids else {"count": 0}
    if not now["count"]:
        return notices
    details = _details(ask, ids)
    made = [
        Message(
            "{first} to {last}: {income} in, {expenses} out",
            first=first,
            last=last,
            income=_amount(now["income"], now["currency"]),
            expenses=_amount(now["expenses"], now["currency"]),
        ),
        *_usual(ask, ids, digest, first),
        *_coming(details, last, last + AHEAD[digest]),
        *_biggest(ask, ids, first, last),
        *_prices(details, first, last),
        *_categories(ask, ids, first, last, language),
        *_new_payees(ask, ids, first, last),
        *_over_target(ask, last, language),
        *notices,
        *(_gaps(ask) if GAP not in told else ()),
    ]
    booked = ask("searchTransactions", "/transactions/search", account_ids=ids, sort="-bookingDate", page=1, per_page=1)
    latest = booked["transactions"][0]["bookingDate"][:10]
    return [*made, Message("The last transaction is of {day}", day=date.fromisoformat(latest))]


def _sums(ask: Ask, ids: str, first: date, last: date, **more: Any) -> Json:
    given = {"account_ids": ids, "date_from": first, "date_to": last, "limit": LISTED, "sort": "expenses", **more}
    return ask("sumTransactions", "/transactions/totals", **given)


def _usual(ask: Ask, ids: str, digest: str, first: date) -> Iterator[Message]:
    sums = []
    for _ in range(BEFORE):
        last = first - timedelta(days=1)
        first = last - timedelta(days=6) if digest == "weekly" else last.replace(day=1)
        sums.append(_sums(ask, ids, first, last))
    if all(each["count"] for each in sums):
        means = {name: sum(Decimal(str(each[name])) for each in sums) / BEFORE for name in ("income", "expenses")}
        currency = sums[0]["currency"]
        yield Message(
            "Usually {income} in, {expenses} out",
            income=Amount.of(Decimal(means["income"]), currency),
            expenses=Amount.of(Decimal(means["expenses"]), currency),
        )


def _details(ask: Ask, ids: str) -> list[Json]:
    given = {"account_ids": ids, "status": "ongoing", "with_charges": False}
    found: list[Json] = ask("listSubscriptionDetails", "/subscriptions/details", **given)["subscriptions"]
    return found


def _coming(details: Sequence[Json], after: date, until: date) -> Iterator[Message]:
    due = [
        (date.fromisoformat(day[:10]), each)
        for each in details
        for day in each["comingCharges"]
        if after < date.fromisoformat(day[:10]) <= until
    ]
    for day, each in sorted(due, key=lambda one: one[0])[:LISTED]:
        yield Message("{name} is due on {day}: {amount}", **_named(each), day=day)


def _biggest(ask: Ask, ids: str, first: date, last: date) -> Iterator[Message]:
    given = {"account_ids": ids, "date_from": first, "date_to": last, "counted": True, "page": 1, "per_page": LISTED}
    found = [
        each
        for sort in ("amount", "-amount")
        for each in ask("searchTransactions", "/transactions/search", sort=sort, **given)["transactions"]
    ]
    by_id = {each["id"]: each for each in found}
    for each in sorted(by_id.values(), key=lambda one: -abs(one["amount"]))[:LISTED]:
        day = date.fromisoformat(each["bookingDate"][:10])
        yield Message("{name} on {day}: {amount}", **_named(each), day=day)


def _prices(details: Sequence[Json], first: date, last: date) -> Iterator[Message]:
    for each in details:
        change = each["priceChange"]
        since = change["since"][:10] if change is not None else ""
        if first.isoformat() <= since <= last.isoformat() and change["amount"] > 0:
            more = _amount(change["amount"], each["currency"])
            yield Message("{name} now costs {amount}, {more} more", **_named(each), more=more)


def _categories(ask: Ask, ids: str, first: date, last: date, language: str) -> Iterator[Message]:
    how = {"group_by": "category", "compare_with": "previousPeriod", "sort": "change"}
    found = _sums(ask, ids, first, last, **how)
    for each in found["groups"] if found.get("compared") else ():
        change = Decimal(str(each["expenses"])) - Decimal(str((each["compared"] or {"expenses": 0})["expenses"]))
        if change:
            category, size = _place(each["key"], language), Amount.of(abs(change), found["currency"])
            text = "{category}: {amount} more than before" if change > 0 else "{category}: {amount} less than before"
            yield Message(text, category=category, amount=size)


def _new_payees(ask: Ask, ids: str, first: date, last: date) -> Iterator[Message]:
    given = {"account_ids": ids, "date_from": first, "date_to": last, "flag": "new_payee"}
    found = ask("searchTransactions", "/transactions/search", sort="amount", page=1, per_page=LISTED, **given)
    names = sorted({visible_name(_name(each)) for each in found["transactions"]} - {""})
    if names:
        yield Message("New payees: {names}", names=names)


def _over_target(ask: Ask, last: date, language: str) -> Iterator[Message]:
    own = {each["id"]: each["name"] for each in ask("listCategories", "/categories").get("own", [])}
    for each in ask("listTargets", "/targets", month=last.isoformat()[:7])["targets"]:
        if each["left"] < 0:
            over = _amount(-each["left"], each["currency"])
            place = own.get(each["ownCategoryId"]) or _place(each["detailedCategory"] or each["category"], language)
            yield Message("{category}: {amount} over your target", category=place, amount=over)


def _gaps(ask: Ask) -> Iterator[Message]:
    for each in ask("listNotices", "/notices", state="open", kind=GAP, limit=200)["notices"]:
        yield Message("{text}", text=each["text"])


def _place(key: str, language: str) -> str:
    """A category as the page calls it."""
    texts = catalogue(language).texts
    return texts.get(("page", key)) or texts.get(("category", key)) or key


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": visible_name(_name(row)), "amount": _amount(row["amount"], row["currency"])}


def _name(row: Mapping[str, Any]) -> str:
    return row["merchantName"] or row.get("counterpartName") or row.get("purpose") or ""


def _amount(number: float, currency: str) -> Amount:
    return Amount.of(Decimal(str(number)), currency)
