"""Bank connections whose key this machine does not have: they wait for the file of keys, and go on when it is back."""

import json
from collections.abc import Sequence

from storage import connections, store_facts
from storage.bank_access import connection_secrets
from storage.bank_access.connection_keys import ConnectionKeys
from storage.database import Database, Session

WAITING = "connections that wait for their key"


def settle(database: Database, keys: ConnectionKeys) -> None:
    """Have those that lost their key need their user, and those whose key is back need nobody; for a store that only
    this machine opens. Others that need their user stay as they are: the store remembers which these are."""

    def work(session: Session) -> None:
        lost = connection_secrets.unreadable(session, keys)
        before = _waiting(session)
        for user_id, connection_id in before:
            if (user_id, connection_id) not in lost:
                connections.need_user_no_more(session, user_id, connection_id)
        waiting = [each for each in lost if each in before or connections.need_user(session, *each)]
        if waiting != before:
            store_facts.remember(session, WAITING, json.dumps(waiting))

    database.atomically(work)


def _waiting(session: Session) -> Sequence[tuple[str, str]]:
    """User and id of those that waited when this was settled last."""
    return [(user_id, id_) for user_id, id_ in json.loads(store_facts.recall(session, WAITING) or "[]")]
