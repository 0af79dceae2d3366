"""The notices of each user: what was found is compared with what is stored, so that each cause is told once."""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Literal

from msgspec import Struct

from analytics.notices.found import Finding
from storage.database import Row, Session, add_row_unless_there, as_json, set_values

State = Literal["open", "read", "snoozed", "dismissed", "over", "withdrawn", "known"]

LIVE: Sequence[State] = ("open", "read", "snoozed")
LISTED: Sequence[State] = (*LIVE, "dismissed", "over", "withdrawn")
DAY = timedelta(days=1)
REMEMBERED_FOR = timedelta(days=400)
NEW, OVER = "notice.new", "notice.over"
COLUMNS = "id, kind, subject, day, stage, state, interrupts, content, ends_on, snoozed_until, created_at, changed_at"


class Notice(Struct, frozen=True, kw_only=True):
    """A stored notice. `content` has its message with the arguments, the ids of what it is about, and its amount, each
    as JSON; those of rows are the present ones since the last look."""

    id: str
    kind: str
    subject: str
    day: date
    stage: str
    state: State
    interrupts: bool
    content: Mapping[str, Any]
    ends_on: date | None
    snoozed_until: date | None
    created_at: datetime
    changed_at: datetime


def of_user(session: Session, user_id: str, *, states: Collection[str] = LISTED) -> list[Notice]:
    """The user's notices in these states, the latest first."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM notices WHERE user_id = $1 AND state = ANY($2::TEXT[]) ORDER BY created_at DESC, id",
        *(user_id, list(states)),
    )
    return list(map(_notice, rows))


def of_kinds(session: Session, user_id: str, kinds: Collection[str]) -> list[Notice]:
    """The user's notices of these kinds in whatever state, those never told included."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM notices WHERE user_id = $1 AND kind = ANY($2::TEXT[])", user_id, sorted(kinds)
    )
    return list(map(_notice, rows))


def days_due(session: Session, user_id: str) -> list[date]:
    """The days on which something becomes of the user's notices though nothing comes: what was put off is open again,
    what has an end is over."""
    rows = session.rows(
        "SELECT ends_on, snoozed_until FROM notices WHERE user_id = $1 AND state = ANY($2::TEXT[])",
        *(user_id, list(LIVE)),
    )
    ends = [row["ends_on"] + DAY for row in rows if row["ends_on"] is not None]
    return [*ends, *(row["snoozed_until"] for row in rows if row["snoozed_until"] is not None)]


def find(session: Session, user_id: str, id_: str) -> Notice | None:
    """The user's notice with this id; None where there is none, or it was never told."""
    rows = session.rows(f"SELECT {COLUMNS} FROM notices WHERE user_id = $1 AND id = $2", user_id, id_)
    return _notice(rows[0]) if rows and rows[0]["state"] != "known" else None


def set_state(session: Session, user_id: str, id_: str, state: State, *, until: date | None, now: datetime) -> None:
    """Store what the user has done with a notice; `until` only for one that is snoozed."""
    session.changes(user_id)
    which = {"user_id": user_id, "id": id_}
    set_values(session, "notices", which, state=state, snoozed_until=until, changed_at=now)


def wake(session: Session, user_id: str, *, today: date) -> None:
    """Open again, and tell once more, what the user has put off until today; end what has ended by its day alone."""
    asleep = "user_id = $1 AND state = 'snoozed' AND snoozed_until <= $2"
    past = "user_id = $1 AND kind = 'access.new' AND ends_on < $2 AND state = ANY($3::TEXT[])"
    if session.rows(f"SELECT id FROM notices WHERE {asleep} OR {past} LIMIT 1", user_id, today, list(LIVE)):
        session.changes(user_id)
        session.execute(f"UPDATE notices SET state = 'open', untold = '{NEW}' WHERE {asleep}", user_id, today)
        session.execute(f"UPDATE notices SET state = 'over' WHERE {past}", user_id, today, list(LIVE))


def reconcile(
    session: Session,
    user_id: str,
    kinds: Collection[str],
    found: Iterable[Finding],
    *,
    today: date,
    is_known: Callable[[Finding], bool] = lambda _: False,
    is_judged: Callable[[Notice], bool] = lambda _: True,
) -> None:
    """Bring the stored notices of these kinds in line with what was found: what is new is told, unless `is_known` from
    before; what is back is open again without a word; what was not found, where that `is_judged`, is over, or withdrawn
    if a booking of it is gone. The commit tells of it (`untold`), and counts as a change of the user's data if
    anything differs."""
    before, met = of_kinds(session, user_id, kinds), set[str]()
    parted = _parted(session, user_id, before)
    current = (each for each in found if each.ends_on is None or each.ends_on >= today)  # a right that lapsed is over
    for each in current:
        same = next((one for one in before if one.id not in met and _is_same(one, each, parted)), None)
        if same is None:
            id_ = _id_of(user_id, each)
            if id_ not in met:
                add(session, user_id, each, is_known=is_known(each), today=today)
                met.add(id_)
            continue
        met.add(same.id)
        _meet_again(session, user_id, same, each)
    for one in before:
        if one.id not in met and is_judged(one):
            _miss(session, user_id, one)


def _parted(session: Session, user_id: str, before: Sequence[Notice]) -> Mapping[str, set[str]]:
    """The accounts, all there, of the notices that have lines of another account too, by notice: the two were one, and
    what becomes of the other is no longer theirs."""
    several = {one.id: set(one.content["accountIds"]) for one in before if "\n" in one.subject}
    if not several:
        return {}
    there = {row["id"] for row in session.rows("SELECT id FROM accounts WHERE user_id = $1", user_id)}
    return {id_: ids for id_, ids in several.items() if ids and ids <= there}


def _is_same(one: Notice, each: Finding, parted: Mapping[str, set[str]]) -> bool:
    if one.kind != each.kind:
        return False
    if each.cause_day is not None and not set(each.transaction_ids).isdisjoint(one.content["transactionIds"]):
        return True  # another source words its bookings otherwise
    if each.account_ids and one.id in parted and parted[one.id].isdisjoint(each.account_ids):
        return False
    if one.subject != each.subject and set(one.subject.splitlines()).isdisjoint(each.subject.splitlines()):
        return False
    if each.is_lasting and one.state not in ("over", "withdrawn"):
        return True
    return abs((one.day - each.day).days) <= each.within


def add(session: Session, user_id: str, each: Finding, *, today: date, is_known: bool = False) -> None:
    """Store what was found, to be told by this commit unless `is_known`; what is stored stays as it is."""
    session.changes(user_id)
    add_row_unless_there(
        session,
        "notices",
        user_id=user_id,
        id=_id_of(user_id, each),
        kind=each.kind,
        subject=each.subject,
        day=each.day,
        state="known" if is_known else "open",
        untold="" if is_known else NEW,
        created_at=datetime.combine(today, time.min),
        changed_at=datetime.combine(today, time.min),
        **_values(each),
    )


def _meet_again(session: Session, user_id: str, one: Notice, each: Finding) -> None:
    """Store what is found again as it is now, and by what it may be found the next time. It is open again where it was
    withdrawn or over; and told once more where it has come to another stage."""
    _add_lines(session, user_id, one, each.subject.splitlines())
    if one.state == "known":
        return
    values = _values(each)
    is_further = _is_further(one, each)
    values["stage"] = each.stage if is_further else one.stage
    state: State = "open" if one.state in ("over", "withdrawn") or is_further else one.state
    values["interrupts"] = each.interrupts if is_further else one.interrupts
    same = {"stage": one.stage, "interrupts": one.interrupts, "ends_on": one.ends_on, "content": as_json(one.content)}
    if state == one.state and values == same:
        return
    session.changes(user_id)
    told = {"untold": NEW} if is_further else {}
    set_values(session, "notices", {"user_id": user_id, "id": one.id}, state=state, **values, **told)


def _is_further(one: Notice, each: Finding) -> bool:
    """Whether the cause has come to another stage; of a consent that ends, to one with fewer days left: neither a clock
    set back nor an end moved by hours tells an earlier one again."""
    if each.kind == "consent.ending":
        return int(each.stage) < int(one.stage)
    return one.stage != each.stage


def _miss(session: Session, user_id: str, one: Notice) -> None:
    if one.state in LIVE:
        ids = one.content["transactionIds"]
        there = session.rows("SELECT id FROM transactions WHERE user_id = $1 AND id = ANY($2::TEXT[])", user_id, ids)
        state, untold = "over" if len(there) == len(ids) else "withdrawn", OVER
    elif one.state == "dismissed" and one.ends_on is None:
        state, untold = "over", ""
    else:
        return
    session.changes(user_id)
    which = {"user_id": user_id, "id": one.id}
    set_values(session, "notices", which, state=state, untold=untold, snoozed_until=None)


def _values(each: Finding) -> dict[str, Any]:
    content = {
        "message": each.message,
        "arguments": dict(each.arguments),
        "accountIds": list(each.account_ids),
        "transactionIds": list(each.transaction_ids),
        "subscriptionId": each.subscription_id,
        "connectionId": each.connection_id,
        "amount": str(each.amount) if isinstance(each.amount, Decimal) else None,
        "currency": each.currency,
        "dueOn": each.due_on.isoformat() if each.due_on is not None else None,
        "returnableUntil": each.returnable_until.isoformat() if each.returnable_until is not None else None,
    }
    return {
        "stage": each.stage,
        "interrupts": each.interrupts,
        "ends_on": each.ends_on,
        "content": as_json(content),
    }


def _id_of(user_id: str, each: Finding) -> str:
    cause = "\x1f".join((user_id, each.kind, each.subject, each.day.isoformat()))
    return f"ntc_{hashlib.sha256(cause.encode()).hexdigest()[:24]}"


def _notice(row: Row) -> Notice:
    return Notice(**{**row, "content": json.loads(row["content"])})


def hand_over(session: Session, user_id: str, account_id: str, other_id: str) -> None:
    """Have what was told of an account count as told of the other one, too: they become one, or are two again."""
    rows = session.rows(f"SELECT {COLUMNS} FROM notices WHERE user_id = $1 AND strpos(subject, $2) > 0",
                        user_id, account_id)  # fmt: skip
    for one in map(_notice, rows):
        _add_lines(session, user_id, one, one.subject.replace(account_id, other_id).splitlines())
        ids = one.content["accountIds"]
        if account_id in ids:  # whose it is, the next look tells
            content = as_json({**one.content, "accountIds": list(dict.fromkeys([*ids, other_id]))})
            set_values(session, "notices", {"user_id": user_id, "id": one.id}, content=content)


def _add_lines(session: Session, user_id: str, one: Notice, lines: Sequence[str]) -> None:
    """Have a stored notice be found again by these lines, too."""
    known = dict.fromkeys(one.subject.splitlines())
    if not known.keys() >= set(lines):
        subject = "\n".join({**known, **dict.fromkeys(lines)})
        set_values(session, "notices", {"user_id": user_id, "id": one.id}, subject=subject)


def told_now(session: Session, user_id: str, now: datetime) -> list[tuple[str, str, dict[str, Any]]]:
    """The events (type, id of the notice, data) that this commit tells of notices; deletes the notes of them, and dates
    the notices."""
    noted = session.rows(
        "SELECT id, kind, untold, content FROM notices WHERE user_id = $1 AND untold <> '' ORDER BY id", user_id
    )
    if noted:
        session.execute(
            f"UPDATE notices SET created_at = CASE WHEN untold = '{NEW}' THEN $2 ELSE created_at END, changed_at = $2,"
            " untold = '' WHERE user_id = $1 AND untold <> ''",
            *(user_id, now),
        )
    return [
        (row["untold"], row["id"], {"kind": row["kind"], "accountIds": json.loads(row["content"])["accountIds"]})
        for row in noted
    ]


def take_back(session: Session, user_id: str, account_ids: Collection[str], booking_ids: Collection[str]) -> None:
    """Delete what was told of these accounts alone, or of any of these bookings: somebody else shows them no more."""
    rows = session.rows("SELECT id, content FROM notices WHERE user_id = $1", user_id)
    told = {row["id"]: json.loads(row["content"]) for row in rows}
    gone = [
        id_
        for id_, about in told.items()
        if not set(about["transactionIds"]).isdisjoint(booking_ids)
        or (about["accountIds"] and set(about["accountIds"]) <= set(account_ids))
    ]
    session.execute("DELETE FROM notices WHERE user_id = $1 AND id = ANY($2::TEXT[])", user_id, gone)


def forget(session: Session, *, before: datetime) -> None:
    """Delete the notices of which nothing was heard since this time."""
    session.execute("DELETE FROM notices WHERE changed_at < $1 AND state <> ALL($2::TEXT[])", before, list(LIVE))
