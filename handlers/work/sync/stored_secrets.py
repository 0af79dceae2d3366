"""Reads the secrets of bank connections from the store for their sources, and stores them when sources change them."""

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
    """Reads and replaces the secrets of bank connections, which lie encrypted in the store."""

    def __init__(self, store: Store, keys: ConnectionKeys) -> None:
        self._store = store
        self._keys = keys

    def read(self, connection: StoredConnection) -> Mapping[str, Any]:
        """All secrets of the connection, empty where it has none; raises UserActionRequired if they cannot be
        decrypted, and Misconfigured if the keys cannot be used (where these are, only the log says)."""
        try:
            return connection_secrets.find(self._of(connection), self._keys, connection.user_id, connection.id)
        except SecretsUnreadable as error:
            raise UserActionRequired(KEY_IS_GONE, detail=str(error)) from error
        except KeysUnusable as error:
            raise Misconfigured(KEYS_UNUSABLE, detail=str(error)) from error

    def can_read(self, connection: StoredConnection) -> bool:
        """Whether this machine has the keys of all the connection's secrets, read anew if they may have changed. True
        also where it has no secrets, and if the keys cannot be used at all, which is reported elsewhere."""
        try:
            return self._opens(connection) or (self._keys.look_again() and self._opens(connection))
        except KeysUnusable:
            return True

    def keep(self, connection: StoredConnection, secrets: Mapping[str, Any], *, instead_of: Mapping[str, Any]) -> bool:
        """Replace the secrets `instead_of` by these, durably, and return True. A connection that has been removed or
        renewed meanwhile keeps its secrets, since an older sync would otherwise undo the renewal; that is logged, and
        False returned."""
        user_id, id_ = connection.user_id, connection.id

        def work(session: Session) -> bool:
            found = connections.find(session, user_id, id_)
            if found is None or found.status == "DISCONNECTED":
                return False
            if connection_secrets.find(session, self._keys, user_id, id_) != dict(instead_of):
                return False
            connection_secrets.keep(session, self._keys, user_id, id_, secrets)
            return True

        with self._keys.hold():
            is_kept = self._of(connection).atomically(work)
        if not is_kept:
            log.info("connection=%s was renewed or removed meanwhile: an older sync's secrets were not kept", id_)
        return is_kept

    def _opens(self, connection: StoredConnection) -> bool:
        ids = self._keys.ids
        return connection_secrets.is_sealed_with(self._of(connection), ids, connection.user_id, connection.id)

    def _of(self, connection: StoredConnection) -> Database:
        return self._store.of(connection.user_id)
