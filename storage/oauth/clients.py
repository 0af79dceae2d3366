"""The apps that may ask users for access."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from storage.database import Row, Session, add_row, as_json, names_of, values_of
from storage.oauth.moments import aware, with_moments

RegisteredBy = Literal["self", "operator", "builtin", "document", "simplefin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """An app that may ask users for access."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    metadata: dict[str, Any]
    registered_by: RegisteredBy
    address_hash: str | None
    network_hash: str | None
    created_at: datetime
    used_at: datetime | None


COLUMNS = names_of(Client)


def find(session: Session, client_id: str) -> Client | None:
    """The client of this id."""
    rows = session.rows(f"SELECT {COLUMNS} FROM oauth_clients WHERE id = $1", client_id)
    return _client(rows[0]) if rows else None


def list_all(session: Session) -> list[Client]:
    """All clients, oldest first."""
    return [_client(row) for row in session.rows(f"SELECT {COLUMNS} FROM oauth_clients ORDER BY created_at, id")]


def add(session: Session, client: Client) -> None:
    """Store a client; raises Conflict when the id is taken."""
    add_row(session, "oauth_clients", **{**values_of(client), **_described(client)})


def move(session: Session, client_id: str, redirect_uris: tuple[str, ...]) -> None:
    """Give a client other addresses to be answered at."""
    session.execute(
        "UPDATE oauth_clients SET redirect_uris = $2 WHERE id = $1", client_id, as_json(list(redirect_uris))
    )


def describe_anew(session: Session, client: Client) -> None:
    """Keep what an app says of itself now; requests that wait for an answer end, for they showed something else."""
    session.execute("DELETE FROM oauth_requests WHERE client_id = $1", client.id)
    session.execute(
        "UPDATE oauth_clients SET name = $2, redirect_uris = $3, metadata = $4 WHERE id = $1",
        *(client.id, client.name, *_described(client).values()),
    )


def remove(session: Session, client_id: str) -> bool:
    """Delete a client with its requests; its grants are revoked by the caller first."""
    session.execute("DELETE FROM oauth_requests WHERE client_id = $1", client_id)
    return session.execute("DELETE FROM oauth_clients WHERE id = $1", client_id) > 0


def unused_of_address(session: Session, address_hash: str | None, *, since: datetime) -> list[datetime]:
    """The moments at which this address registered clients that nobody has allowed yet, oldest first."""
    return _unused(session, "address_hash", address_hash, since)


def unused_of_network(session: Session, network_hash: str | None, *, since: datetime) -> list[datetime]:
    """The moments at which the network of this address registered such clients."""
    return _unused(session, "network_hash", network_hash, since)


def _unused(session: Session, column: str, origin: str | None, since: datetime) -> list[datetime]:
    rows = session.rows(
        f"SELECT created_at FROM oauth_clients WHERE {column} = $1 AND created_at > $2 AND used_at IS NULL"
        " ORDER BY created_at",
        *(origin, since),
    )
    return [aware(row["created_at"]) for row in rows]


def count_self_registered(session: Session) -> int:
    """How many clients registered themselves."""
    rows = session.rows("SELECT count(*) AS number FROM oauth_clients WHERE registered_by = 'self'")
    return int(rows[0]["number"])


def remove_idlest(session: Session) -> bool:
    """Delete the client that is missed least: of those without a grant the one that waits longest for its first user,
    else the one whose last use is longest ago; False when each of them has a grant."""
    rows = session.rows(
        "SELECT id FROM oauth_clients WHERE registered_by = 'self'"
        " AND NOT EXISTS (SELECT 1 FROM oauth_grants g WHERE g.client_id = oauth_clients.id)"
        " ORDER BY used_at IS NOT NULL, coalesce(used_at, created_at), id LIMIT 1"
    )
    return bool(rows) and remove(session, rows[0]["id"])


def mark_used(session: Session, client_id: str, *, now: datetime, unless_since: datetime) -> None:
    """A user allowed it, or it fetched tokens: it no longer counts against its address, and is kept from now on as
    Cleanup says; written only where that was not said since a moment."""
    session.execute(
        "UPDATE oauth_clients SET used_at = $2 WHERE id = $1 AND (used_at IS NULL OR used_at < $3)",
        *(client_id, now, unless_since),
    )


def _described(client: Client) -> dict[str, str]:
    return {"redirect_uris": as_json(list(client.redirect_uris)), "metadata": as_json(client.metadata)}


def _client(row: Row) -> Client:
    row = with_moments(row)
    return Client(
        **{**row, "redirect_uris": tuple(json.loads(row["redirect_uris"])), "metadata": json.loads(row["metadata"])}
    )
