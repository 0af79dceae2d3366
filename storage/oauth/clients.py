"""The apps that may ask users for access."""

import json
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, field

from storage.database import Row, Session, add_row, as_json, names_of, set_values, values_of
from storage.oauth.moments import aware, with_moments

RegisteredBy = Literal["self", "operator", "builtin", "document", "simplefin"]


class Client(Struct, frozen=True, kw_only=True):
    """An app that may ask users for access. `address_hash` and `network_hash` tell from where it was registered;
    `used_at` is its last use as noted, None before a user has allowed it."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    metadata: dict[str, Any] = field(default_factory=dict)
    registered_by: RegisteredBy
    address_hash: str | None = None
    network_hash: str | None = None
    created_at: datetime
    used_at: datetime | None = None


COLUMNS = names_of(Client)


def find(session: Session, client_id: str) -> Client | None:
    """The client with this id; None where there is none."""
    rows = session.rows(f"SELECT {COLUMNS} FROM oauth_clients WHERE id = $1", client_id)
    return _client(rows[0]) if rows else None


def list_all(session: Session) -> list[Client]:
    """All clients, oldest first."""
    return [_client(row) for row in session.rows(f"SELECT {COLUMNS} FROM oauth_clients ORDER BY created_at, id")]


def add(session: Session, client: Client) -> None:
    """Store a client. Raises Conflict when the id is taken."""
    add_row(session, "oauth_clients", **{**values_of(client), **_description(client)})


def set_redirect_uris(session: Session, client_id: str, redirect_uris: tuple[str, ...]) -> None:
    """Replace the redirect URIs of a client."""
    set_values(session, "oauth_clients", {"id": client_id}, redirect_uris=as_json(list(redirect_uris)))


def describe_anew(session: Session, client: Client) -> None:
    """Store the client's new description, and delete its open requests, because users saw the earlier one."""
    session.execute("DELETE FROM oauth_requests WHERE client_id = $1", client.id)
    set_values(session, "oauth_clients", {"id": client.id}, name=client.name, **_description(client))


def remove(session: Session, client_id: str) -> bool:
    """Delete a client with its open requests; False where there is none. Its grants are revoked by the caller first."""
    session.execute("DELETE FROM oauth_requests WHERE client_id = $1", client_id)
    return session.execute("DELETE FROM oauth_clients WHERE id = $1", client_id) > 0


def unused_of_address(session: Session, address_hash: str | None, *, since: datetime) -> list[datetime]:
    """The times since `since` at which clients that no user has allowed yet were registered from this address, oldest
    first."""
    return _registration_times(session, "address_hash", address_hash, since)


def unused_of_network(session: Session, network_hash: str | None, *, since: datetime) -> list[datetime]:
    """The times since `since` at which clients that no user has allowed yet were registered from this network, oldest
    first."""
    return _registration_times(session, "network_hash", network_hash, since)


def _registration_times(session: Session, column: str, origin: str | None, since: datetime) -> list[datetime]:
    rows = session.rows(
        f"SELECT created_at FROM oauth_clients WHERE {column} = $1 AND created_at > $2 AND used_at IS NULL"
        " ORDER BY created_at",
        *(origin, since),
    )
    return [aware(row["created_at"]) for row in rows]


def count_self_registered(session: Session) -> int:
    """The number of clients that registered themselves."""
    rows = session.rows("SELECT count(*) AS number FROM oauth_clients WHERE registered_by = 'self'")
    return int(rows[0]["number"])


def remove_idlest(session: Session) -> bool:
    """Delete the self-registered client that nobody will miss; False when each of them has a grant, or there is none.

    Of those without a grant, this is the one that has waited longest for its first user, else the one whose last use is
    longest ago.
    """
    rows = session.rows(
        "SELECT id FROM oauth_clients WHERE registered_by = 'self'"
        " AND NOT EXISTS (SELECT 1 FROM oauth_grants g WHERE g.client_id = oauth_clients.id)"
        " ORDER BY used_at IS NOT NULL, coalesce(used_at, created_at), id LIMIT 1"
    )
    return bool(rows) and remove(session, rows[0]["id"])


def mark_used(session: Session, client_id: str, *, now: datetime, unless_since: datetime) -> None:
    """Record that a user allowed the client, or that it fetched tokens; skipped if recorded since `unless_since`.

    It then no longer counts against its address, and cleanup keeps it for a year after its last use.
    """
    session.execute(
        "UPDATE oauth_clients SET used_at = $2 WHERE id = $1 AND (used_at IS NULL OR used_at < $3)",
        *(client_id, now, unless_since),
    )


def _description(client: Client) -> dict[str, str]:
    return {"redirect_uris": as_json(list(client.redirect_uris)), "metadata": as_json(client.metadata)}


def _client(row: Row) -> Client:
    row = with_moments(row)
    return Client(
        **{**row, "redirect_uris": tuple(json.loads(row["redirect_uris"])), "metadata": json.loads(row["metadata"])}
    )
