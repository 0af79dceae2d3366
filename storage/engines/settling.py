"""What every transaction that changed a user's data does last, whatever the engine."""

from collections.abc import Collection
from datetime import datetime

from storage.annotations import anchors
from storage.changes import account_states, first_answers
from storage.database import Session
from storage.events import outbox

OF_WORDS = frozenset(anchors.TABLES)
OF_NO_EVENT = OF_WORDS | {"users", None}
"""What a note or a tag alone writes: the words, the state of the user's data, and nothing that is only read."""


def settle(
    session: Session, user_id: str, *, before: int, state: int, now: datetime, written: Collection[str | None]
) -> None:
    """Record changed accounts, events and first answers of this user, whose data began with the state `before` and end
    in `state`; `written` are the tables of which the transaction has written rows. Words on bookings change no account
    and bring no event: where nothing else was written, neither is looked for."""
    if OF_WORDS.isdisjoint(written) or not OF_NO_EVENT.issuperset(written):
        balances = account_states.settle(session, user_id, state, written)
        outbox.settle(session, user_id, state, now, balances, written)
    first_answers.settle(session, user_id, before=before, state=state, written=written)
