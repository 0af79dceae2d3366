"""Prepares a connection for its source: with its secrets, and with the person who is present."""

import json
from collections.abc import Mapping
from typing import Protocol

from msgspec.structs import replace

from connectors.connector import Connection, Json, Person
from storage.connections import StoredConnection
from storage.database import as_json


class Secrets(Protocol):
    """Reads and replaces the secrets of bank connections."""

    def read(self, connection: StoredConnection) -> Json:
        """All secrets of the connection, empty where it has none; raises UserActionRequired if they cannot be read."""
        ...

    def can_read(self, connection: StoredConnection) -> bool:
        """Whether this machine has the keys of all the connection's secrets; True where it has none."""
        ...

    def keep(self, connection: StoredConnection, secrets: Json, *, instead_of: Json) -> bool:
        """Replace the secrets `instead_of` by these, durably, and return True. Nothing changes, and False is returned,
        if others are stored by now, because the connection has been renewed."""
        ...


def source_connection(
    connection: StoredConnection, secrets: Secrets | None, attended: Mapping[str, str] | None = None
) -> Connection:
    """The connection as its source needs it, with a function by which the source replaces its secrets, or without
    secrets if `secrets` is None; `attended` is the person who is present, as a job stores them. Raises
    UserActionRequired and Misconfigured where the secrets cannot be read."""
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

    def keep(given: Json) -> None:
        """Store new secrets that the source hands out in place of those it was given, never over newer ones."""
        nonlocal known
        plain = json.loads(as_json(dict(given)))
        if secrets.keep(connection, plain, instead_of=known):
            known = plain

    return replace(bare, secrets=known, keep_secrets=keep)
