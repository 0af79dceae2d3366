"""The secrets of bank connections, as sources need them and as they change: read from the store and kept there."""

import logging
from collections.abc import Mapping
from typing import Any

from connectors.connector import Misconfigured, UserActionRequired
from storage import connections
from storage.bank_access import connection_secrets
from storage.bank_access.connection_keys import ConnectionKeys, SecretsUnreadable
from storage.connections import StoredConnection
from storage.database import Database, Session, Store
from storage.keys.places import KeysUnusable

KEY_IS_GONE = "What opens this bank cannot be read any more, for its key is gone. Connect the bank again."
KEYS_UNUSABLE = "The server cannot use the keys of its bank connections. Its operator finds the reason in the log."
KEY_MISSING = (
    "The key of this bank is not on this server. Once its operator brings it back the bank is asked again; nothing was"
    " changed."
)

log = logging.getLogger("bankdata.sync")


class StoredSecrets:
    """Opens and seals the secrets of connections."""

    def __init__(self, store: Store, keys: ConnectionKeys) -> None:
        self._store = store
        self._keys = keys

    def read(self, connection: StoredConnection) -> Mapping[str, Any]:
        """All of them, empty where the connection has none; raises UserActionRequired if they cannot be opened, and
        Misconfigured where the keys cannot be used: their place is for the log alone."""
        try:
            return connection_secrets.find(self._of(connection), self._keys, connection.user_id, connection.id)
        except SecretsUnreadable as error:
            raise UserActionRequired(KEY_IS_GONE, detail=str(error)) from error
        except KeysUnusable as error:
            raise Misconfigured(KEYS_UNUSABLE, detail=str(error)) from error

    def can_read(self, connection: StoredConnection) -> bool:
        """Whether this machine has the key of all of them; keys that cannot be used are another matter."""
        try:
            return self._opens(connection) or (self._keys.look_again() and self._opens(connection))
        except KeysUnusable:
            return True

    def keep(self, connection: StoredConnection, secrets: Mapping[str, Any], *, instead_of: Mapping[str, Any]) -> bool:
        """Put these in the place of those; this is durable when it returns. A connection that has been removed or
        renewed meanwhile keeps what it has: the last one to write would otherwise undo the renewal."""
        user_id, id_ = connection.user_id, connection.id

        def work(session: Session) -> bool:
            found = connections.find(session, user_id, id_)
            if found is None or found.status == "DISCONNECTED":
                return False
            if connection_secrets.find(session, self._keys, user_id, id_) != dict(instead_of):
                return False
            connection_secrets.keep(session, self._keys, user_id, id_, secrets)
            return True

        with self._keys.held():
            is_kept = self._of(connection).atomically(work)
        if not is_kept:
            log.info("connection=%s was renewed or removed meanwhile: an older sync's secrets were not kept", id_)
        return is_kept

    def _opens(self, connection: StoredConnection) -> bool:
        ids = self._keys.ids
        return connection_secrets.is_sealed_with(self._of(connection), ids, connection.user_id, connection.id)

    def _of(self, connection: StoredConnection) -> Database:
        return self._store.of(connection.user_id)
