"""The secrets of bank connections, as sources need them and as they change: read from the store and kept there."""

from collections.abc import Mapping
from typing import Any

from connectors.connector import Misconfigured, UserActionRequired
from storage import connections
from storage.bank_access import connection_secrets
from storage.bank_access.connection_keys import ConnectionKeys, ConnectionKeysUnusable, SecretsUnreadable
from storage.connections import StoredConnection
from storage.database import Database, Session

KEY_IS_GONE = "What opens this bank cannot be read any more, for its key is gone. Connect the bank again."
KEYS_UNUSABLE = "The server cannot use the keys of its bank connections. Its operator finds the reason in the log."


class StoredSecrets:
    """Opens and seals the secrets of connections."""

    def __init__(self, database: Database, keys: ConnectionKeys) -> None:
        self._database = database
        self._keys = keys

    def read(self, connection: StoredConnection) -> Mapping[str, Any]:
        """All of them, empty where the connection has none; raises UserActionRequired if they cannot be opened, and
        Misconfigured where the file of keys cannot be used: its place is for the log alone."""
        try:
            return connection_secrets.find(self._database, self._keys, connection.user_id, connection.id)
        except SecretsUnreadable as error:
            raise UserActionRequired(KEY_IS_GONE, detail=str(error)) from error
        except ConnectionKeysUnusable as error:
            raise Misconfigured(KEYS_UNUSABLE, detail=str(error)) from error

    def keep(self, connection: StoredConnection, secrets: Mapping[str, Any]) -> None:
        """Put these in the place of all that were there; this is durable when it returns. A connection that has been
        removed meanwhile keeps none."""

        def work(session: Session) -> None:
            found = connections.find(session, connection.user_id, connection.id)
            if found is not None and found.status != "DISCONNECTED":
                connection_secrets.keep(session, self._keys, connection.user_id, connection.id, secrets)

        self._database.atomically(work)
