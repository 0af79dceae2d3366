"""Prepares a connection for its source: with its secrets, and with the person who is present."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from connectors.connector import Connection, Person
from storage.connections import StoredConnection
from storage.database import as_json

Json = Mapping[str, Any]


class Secrets(Protocol):
    """Reads and keeps the secrets of connections."""

    def read(self, connection: StoredConnection) -> Json:
        """All secrets of the connection, empty where it has none; raises UserActionRequired if they cannot be read."""
        ...

    def can_read(self, connection: StoredConnection) -> bool:
        """Whether this machine has the keys of all the connection's secrets."""
        ...

    def keep(self, connection: StoredConnection, secrets: Json, *, instead_of: Json) -> bool:
        """Replace the secrets `instead_of` by these, durably, and return True. Nothing changes, and False is returned,
        if others are stored by now, because the connection has been renewed."""
        ...


class Keeping:
    """Stores new secrets that a source hands out, in place of those it was asked with, and never over newer ones."""

    def __init__(self, secrets: Secrets, connection: StoredConnection, known: Json) -> None:
        self._secrets = secrets
        self._connection = connection
        self._known = known

    def __call__(self, given: Json) -> None:
        """Store the secrets, as JSON."""
        plain = json.loads(as_json(dict(given)))
        if self._secrets.keep(self._connection, plain, instead_of=self._known):
            self._known = plain


def asked(
    connection: StoredConnection, secrets: Secrets | None, attended: Mapping[str, str] | None = None
) -> Connection:
    """The connection as its source needs it, without secrets if `secrets` is None; `attended` is the person as a job
    keeps them. Raises UserActionRequired."""
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
