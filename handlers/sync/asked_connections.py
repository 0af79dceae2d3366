"""Connections as their sources are asked about them: with their secrets, and with who is present."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from connectors.connector import Connection, Person
from storage.connections import StoredConnection

Json = Mapping[str, Any]


class Secrets(Protocol):
    """Where the secrets of connections are kept."""

    def read(self, connection: StoredConnection) -> Json:
        """All of them, empty where the connection has none; raises UserActionRequired if they cannot be read."""
        ...

    def keep(self, connection: StoredConnection, secrets: Json) -> None:
        """Put these in the place of all that were there; this is durable when it returns."""
        ...


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
    return replace(bare, secrets=secrets.read(connection), keep_secrets=partial(secrets.keep, connection))
