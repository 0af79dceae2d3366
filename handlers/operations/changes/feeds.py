"""GET /transactions/changes and GET /accounts/changes: what is new, different or removed since the client asked
last."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from auth.principal import Principal
from handlers import json_shapes
from handlers.names import Json
from handlers.operations.changes.cursors import EXPIRED, Cursors, FeedCursor
from handlers.operations.selection import listed_ids, selected_or_all
from handlers.web.errors import Gone
from handlers.web.request import Answer, Request
from handlers.work.services import Services
from storage import accounts
from storage.changes import feed
from storage.changes.feed import AccountFilter, Position
from storage.database import Session, state_in


class _Change(Struct, frozen=True):
    """One changed row in its JSON shape, with its position in the feed and the list of the answer it belongs to
    (`kind`): added, modified or removed."""

    at: Position
    kind: str
    json: Json


class _Poll(Struct, frozen=True, kw_only=True):
    """A client's request for the changes after its cursor `known` (None: it has no cursor yet); `cursors` write and
    read cursors for what it may read."""

    caller: Principal
    cursors: Cursors
    known: FeedCursor | None
    now: datetime
    limit: int
    account_ids: str | None

    def may_stay(self, state: int | None) -> bool:
        """Whether the client may keep its cursor in this state of the data, because nothing is new and the cursor is
        less than a day old; False without a cursor."""
        return self.known is not None and self.known.may_stay(state, self.now)


class Feed(Struct, frozen=True, kw_only=True):
    """One feed of changes bound to the services; called in a thread, unless `at_once` can answer that nothing is
    new."""

    services: Services
    kind: str
    changes: Callable[[Services, _Poll], Json]

    def __call__(self, request: Request, **arguments: Any) -> Json:
        """Return the next page of changes, all read from one state of the data. If nothing is new, the page is empty
        and no changes are read, unless the cursor is a day old: then it is renewed, so that it does not expire. Raises
        BadRequest and Gone for a cursor that cannot be used."""
        state = self.services.store.state(request.principal.user_id)  # also notices that the database is another one
        self.services.life.settle()
        try:
            poll = self._poll(request, **arguments)
        except Gone:
            self.services.life.look_again()  # another process may have noticed first
            poll = self._poll(request, **arguments)
        if poll.may_stay(state):
            return _nothing_new(arguments["cursor"])
        return self.changes(self.services, poll)

    async def at_once(self, request: Request, **arguments: Any) -> Answer | None:
        """The empty page of a client that may keep its cursor, if the event loop can tell that from the number of the
        data's state alone; else None. Raises BadRequest for a cursor that is not genuine."""
        try:
            poll = self._poll(request, **arguments)
        except Gone:
            return None  # a thread looks whether it is so
        if poll.known is None or not poll.may_stay(await self.services.store.state_without_thread(poll.caller.user_id)):
            return None
        if self.services.life.is_doubtful:
            return None
        return Answer(body=_nothing_new(arguments["cursor"]))

    def _poll(self, request: Request, *, cursor: str | None, limit: int, account_ids: str | None = None) -> _Poll:
        caller, now = request.principal, self.services.clock.now()
        cursors = _cursors(self.services, caller, self.kind, account_ids)
        known = cursors.read(cursor, now) if cursor is not None else None
        return _Poll(caller=caller, cursors=cursors, known=known, now=now, limit=limit, account_ids=account_ids)


def list_transaction_changes(services: Services, poll: _Poll) -> Json:
    """The next page of changes to the booked transactions of the selected accounts, the oldest change first."""
    caller, limit, named = poll.caller, poll.limit, sorted(listed_ids(poll.account_ids))
    with services.of(caller.user_id).transaction() as session:
        start, state = _start(session, poll)
        selected = selected_or_all(accounts.of_user(session, caller.user_id), poll.account_ids, caller)
        rows = feed.changed_transactions(
            session, caller.user_id, selected.filter, after=start.position, limit=limit + 1
        )
        gone = feed.removed_transactions(
            session,
            caller.user_id,
            AccountFilter(named, is_all_but=False) if named else _account_filter(caller),
            after=start.position,
            since=start.floor,
            limit=limit + 1,
        )
    by_id = {account.id: account for account in selected.accounts}
    changed = [
        _Change(
            Position(row["changed_state"], feed.changed_at(row["booking_date"], row["id"])),
            _kind(row["added_state"], start),
            json_shapes.transaction_detail(row, by_id),
        )
        for row in rows
    ]
    changed += [
        _Change(
            Position(row["removed_state"], feed.removed_at(row["id"])),
            "removed",
            {"id": row["id"], "accountId": row["account_id"]},
        )
        for row in gone
    ]
    return _page(changed, start, poll, state)


def cursor_after(services: Services, caller: Principal, account_ids: str | None, state: int) -> str:
    """The cursor, as signed text, for a client that has all transactions of these accounts as they were in this
    state."""
    cursors = _cursors(services, caller, "transactions", account_ids)
    return cursors.write(FeedCursor.at_rest(state, services.clock.now()))


def list_account_changes(services: Services, poll: _Poll) -> Json:
    """The next page of changes to the accounts that the caller may read, the oldest change first."""
    caller = poll.caller
    with services.of(caller.user_id).transaction() as session:
        start, state = _start(session, poll)
        every = [each for each in feed.accounts_by_state(session, caller.user_id) if caller.covers(each.id)]
    changed = [
        _Change(Position(each.changed_state, each.id), "removed", {"id": each.id})
        if each.shown is None
        else _Change(
            Position(each.changed_state, each.id), _kind(each.added_state, start), json_shapes.account(*each.shown)
        )
        for each in every
        if each.shown is not None or each.changed_state > start.floor
    ]
    return _page([each for each in changed if each.at > start.position], start, poll, state)


def _start(session: Session, poll: _Poll) -> tuple[FeedCursor, int]:
    """The cursor after which the page begins (a fresh one for a client without any), and the present state; raises Gone
    for a cursor from a later state."""
    state, known = state_in(session, poll.caller.user_id), poll.known
    if known is None:
        return FeedCursor.fresh(state, poll.now), state
    if max(known.state, known.base, known.floor) > state:
        raise Gone(EXPIRED)
    return known, state


def _nothing_new(cursor: str | None) -> Json:
    return {"added": [], "modified": [], "removed": [], "hasMore": False, "nextCursor": cursor}


def _page(changed: Sequence[_Change], start: FeedCursor, poll: _Poll, state: int) -> Json:
    """The page with the first `poll.limit` of these changes. Its cursor stands at the present state if it holds all of
    them, else at the last one that it holds."""
    shown = sorted(changed, key=lambda each: each.at)[: poll.limit]
    has_more = len(changed) > poll.limit
    following = FeedCursor.at_rest(state, poll.now)
    if has_more:
        last = shown[-1].at
        following = replace(start, state=last.state, place=last.place)
    lists = {kind: [each.json for each in shown if each.kind == kind] for kind in ("added", "modified", "removed")}
    return {**lists, "hasMore": has_more, "nextCursor": poll.cursors.write(following)}


def _kind(added_state: int, start: FeedCursor) -> str:
    return "added" if added_state > start.base else "modified"


def _cursors(services: Services, caller: Principal, kind: str, account_ids: str | None) -> Cursors:
    covered = _account_filter(caller)
    return Cursors(
        incarnation=services.incarnation,
        kind=kind,
        user_id=caller.user_id,
        selection=[sorted(listed_ids(account_ids)), sorted(covered.ids), covered.is_all_but],
    )


def _account_filter(caller: Principal) -> AccountFilter:
    """A filter for the ids of accounts that the caller's grant covers, deleted ones included."""
    if caller.coverage is None:
        return AccountFilter()
    return AccountFilter(caller.coverage.accounts, is_all_but=caller.coverage.is_all_but)
