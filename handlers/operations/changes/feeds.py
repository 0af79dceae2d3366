"""GET /transactions/changes and GET /accounts/changes: what is new, different or gone since a client asked last."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from auth.principal import Principal
from handlers import json_shapes
from handlers.http.errors import Gone
from handlers.http.request import Json, Request
from handlers.operations.changes.cursors import EXPIRED, Cursors, FeedCursor
from handlers.operations.selection import listed_ids, selected_or_all
from handlers.services import Services
from storage import accounts
from storage.changes import feed
from storage.changes.feed import AccountFilter, Position
from storage.database import Session, state_in


@dataclass(frozen=True, slots=True)
class _Change:
    """One row as it is told: where it stands in the feed, and in which of the lists."""

    at: Position
    kind: str
    told: Json


def list_transaction_changes(
    services: Services, request: Request, *, cursor: str | None, limit: int, account_ids: str | None
) -> Json:
    """The next changes of the selected accounts' booked transactions, of one state of the data; where nothing is new,
    no row is read."""
    caller, now, named = request.principal, services.clock.now(), sorted(listed_ids(account_ids))
    cursors = _cursors(services, caller, "transactions", named)
    known = cursors.read(cursor, now) if cursor is not None else None
    if known is not None and known.is_at_rest(services.store.state(caller.user_id)):
        return _page([], known, limit, cursors, now)
    with services.of(caller.user_id).transaction() as session:
        start, state = _start(session, caller, known, now)
        selected = selected_or_all(accounts.of_user(session, caller.user_id), account_ids, caller)
        rows = feed.transactions_changed(
            session, caller.user_id, selected.filter, after=start.position, limit=limit + 1
        )
        gone = feed.transactions_removed(
            session,
            caller.user_id,
            AccountFilter(named, is_all_but=False) if named else _covered(caller),
            after=start.position,
            since=start.floor,
            limit=limit + 1,
        )
    by_id = json_shapes.by_id(selected.accounts)
    told = [
        _Change(
            Position(row["changed_state"], row["id"]),
            _kind(row["added_state"], start),
            json_shapes.transaction_detail(row, by_id),
        )
        for row in rows
    ]
    told += [
        _Change(Position(row["removed_state"], row["id"]), "removed", {"id": row["id"], "accountId": row["account_id"]})
        for row in gone
    ]
    return _page(told, start, limit, cursors, now, state)


def cursor_after(services: Services, caller: Principal, account_ids: str | None, state: int) -> str:
    """The cursor of whoever has all transactions of these accounts as they were in this state."""
    cursors = _cursors(services, caller, "transactions", sorted(listed_ids(account_ids)))
    return cursors.written(FeedCursor.at_rest(state, services.clock.now()))


def list_account_changes(services: Services, request: Request, *, cursor: str | None, limit: int) -> Json:
    """The same of the accounts themselves."""
    caller, now = request.principal, services.clock.now()
    cursors = _cursors(services, caller, "accounts", [])
    known = cursors.read(cursor, now) if cursor is not None else None
    if known is not None and known.is_at_rest(services.store.state(caller.user_id)):
        return _page([], known, limit, cursors, now)
    with services.of(caller.user_id).transaction() as session:
        start, state = _start(session, caller, known, now)
        every = [each for each in feed.accounts_by_state(session, caller.user_id) if caller.covers(each.id)]
    told = [
        _Change(Position(each.changed_state, each.id), "removed", {"id": each.id})
        if each.shown is None
        else _Change(
            Position(each.changed_state, each.id), _kind(each.added_state, start), json_shapes.account(*each.shown)
        )
        for each in every
        if each.shown is not None or each.changed_state > start.floor
    ]
    return _page([each for each in told if each.at > start.position], start, limit, cursors, now, state)


def _start(session: Session, caller: Principal, known: FeedCursor | None, now: datetime) -> tuple[FeedCursor, int]:
    """Where the page begins, and the present state."""
    state = state_in(session, caller.user_id)
    if known is None:
        return FeedCursor.fresh(state, now), state
    if max(known.state, known.base, known.floor) > state:
        raise Gone(EXPIRED)
    return known, state


def _page(
    told: Sequence[_Change], start: FeedCursor, limit: int, cursors: Cursors, now: datetime, state: int | None = None
) -> Json:
    """The first of these changes; after the last of all the cursor stands at this state (None: where it stood)."""
    shown = sorted(told, key=lambda each: each.at)[:limit]
    has_more = len(told) > limit
    following = FeedCursor.at_rest(start.state if state is None else state, now)
    if has_more:
        last = shown[-1].at
        following = replace(start, state=last.state, id=last.id)
    lists = {kind: [each.told for each in shown if each.kind == kind] for kind in ("added", "modified", "removed")}
    return {**lists, "hasMore": has_more, "nextCursor": cursors.written(following)}


def _kind(added_state: int, start: FeedCursor) -> str:
    return "added" if added_state > start.base else "modified"


def _cursors(services: Services, caller: Principal, kind: str, named: Sequence[str]) -> Cursors:
    covered = _covered(caller)
    return Cursors(
        incarnation=services.incarnation,
        kind=kind,
        user_id=caller.user_id,
        selection=[list(named), sorted(covered.ids), covered.is_all_but],
    )


def _covered(caller: Principal) -> AccountFilter:
    """The accounts that the grant covers, those that are gone too."""
    if caller.coverage is None:
        return AccountFilter()
    return AccountFilter(caller.coverage.accounts, is_all_but=caller.coverage.is_all_but)
