"""The key by which push services know this store: one for all processes, sealed like the secrets of bank connections,
among which it is kept as those of nobody."""

from collections.abc import Callable

from storage.bank_access import connection_secrets
from storage.bank_access.connection_keys import ConnectionKeys
from storage.database import NOBODY, Database

PLACE = "web-push"
FIELD = "private"


def find(database: Database, keys: ConnectionKeys, new: Callable[[], str]) -> str:
    """The private key, made by `new` when it is first asked for; of several at once, the first one counts. Raises
    SecretsUnreadable and KeysUnusable."""
    kept = connection_secrets.find(database, keys, NOBODY, PLACE)
    if not kept:
        keys.get_ready()
        with keys.hold():
            database.atomically(lambda session: connection_secrets.begin(session, keys, NOBODY, PLACE, {FIELD: new()}))
        kept = connection_secrets.find(database, keys, NOBODY, PLACE)
    return str(kept[FIELD])


def renew(database: Database, keys: ConnectionKeys, private: str) -> None:
    """Take another key from now on: browsers that subscribed to the former one get nothing any more."""
    keys.get_ready()
    with keys.hold():
        database.atomically(lambda session: connection_secrets.keep(session, keys, NOBODY, PLACE, {FIELD: private}))
