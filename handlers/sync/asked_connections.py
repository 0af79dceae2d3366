"""Connections as their sources are asked about them: with their secrets, and with who is present."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from connectors.connector import Connection, Person
from storage.connections import StoredConnection
from storage.database import as_json

Json = Mapping[str, Any]


class Secrets(Protocol):
    """Where the secrets of connections are kept."""

    def read(self, connection: StoredConnection) -> Json:
        """All of them, empty where the connection has none; raises UserActionRequired if they cannot be read."""
        ...

    def can_read(self, connection: StoredConnection) -> bool:
        """Whether this machine has the key of all of them."""
        ...

    def keep(self, connection: StoredConnection, secrets: Json, *, instead_of: Json) -> bool:
        """Put these in the place of those, durably; false, and nothing is changed, where others are there by now: the
        connection has been renewed."""
        ...


class Keeping:
    """Keeps what a source gives in the place of the secrets that it was asked with, and of nothing newer."""

    def __init__(self, secrets: Secrets, connection: StoredConnection, known: Json) -> None:
        self._secrets = secrets
        self._connection = connection
        self._known = known

    def __call__(self, given: Json) -> None:
        """Keep them, as JSON."""
        plain = json.loads(as_json(dict(given)))
        if self._secrets.keep(self._connection, plain, instead_of=self._known):
            self._known = plain


def asked(
    connection: StoredConnection, secrets: Secrets | None, attended: Mapping[str, str] | None = None
) -> Connection:
    """The connection for its source, without secrets where there is no place for them; `attended` as a job keeps it.
    Raises UserActionRequired."""
    bare = Connection(
        id=connection.id,
        user_id=connection.user_id,
        bank_name=connection.bank_name,
        settings=connection.settings,
        attended=Person(**attended) if attended is not None else None,
    )
    if secrets is None:
        return bare
    known = secrets.read(connection)
    return replace(bare, secrets=known, keep_secrets=Keeping(secrets, connection, known))
