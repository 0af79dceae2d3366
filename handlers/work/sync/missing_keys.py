"""Bank connections whose key this machine does not have: they wait for the file of keys, and go on once it is back."""

import json
from collections.abc import Sequence

from storage import connections, store_facts
from storage.bank_access import connection_secrets
from storage.bank_access.connection_keys import ConnectionKeys
from storage.database import Database, Session

WAITING = "connections that wait for their key"


def settle(database: Database, keys: ConnectionKeys) -> None:
    """Mark connections whose secrets no key of `keys` opens as needing their user, and make those active again that
    were so marked and whose key is back; for a store that only this machine opens. The store remembers which it marked,
    so that others that need their user stay so."""

    def work(session: Session) -> None:
        lost = connection_secrets.unreadable_connections(session, keys)
        before = _connections_waiting(session)
        for user_id, connection_id in before:
            if (user_id, connection_id) not in lost:
                connections.need_user_no_more(session, user_id, connection_id)
        waiting = [each for each in lost if each in before or connections.need_user(session, *each)]
        if waiting != before:
            store_facts.remember(session, WAITING, json.dumps(waiting))

    database.atomically(work)


def _connections_waiting(session: Session) -> Sequence[tuple[str, str]]:
    """User id and connection id of each connection that `settle` marked last time."""
    return [(user_id, id_) for user_id, id_ in json.loads(store_facts.recall(session, WAITING) or "[]")]
