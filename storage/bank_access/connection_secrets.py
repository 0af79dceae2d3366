"""The secrets that open bank connections (access URLs, sessions, tokens, PINs), stored only as sealed by
`ConnectionKeys`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from storage.bank_access.connection_keys import ConnectionKeys, KeyMissing, SecretsUnreadable
from storage.database import Database, Session, add_row_unless_there, as_json, set_values


def keep(session: Session, keys: ConnectionKeys, user_id: str, connection_id: str, secrets: Mapping[str, Any]) -> None:
    """Replace all secrets of the connection by these JSON values, sealed."""
    forget(session, user_id, connection_id)
    begin(session, keys, user_id, connection_id, secrets)


def begin(session: Session, keys: ConnectionKeys, user_id: str, connection_id: str, secrets: Mapping[str, Any]) -> None:
    """Keep these JSON values, sealed; of secrets that are there already nothing changes."""
    for field, value in secrets.items():
        sealed = keys.seal(as_json(value), about=_binding(connection_id, field))
        which = {"user_id": user_id, "connection_id": connection_id, "field": field}
        add_row_unless_there(session, "connection_secrets", **which, sealed=sealed)


def find(session: Session, keys: ConnectionKeys, user_id: str, connection_id: str) -> dict[str, Any]:
    """The decrypted secrets of the connection, by field. Raises SecretsUnreadable where one of them cannot be
    opened."""
    rows = session.rows(
        "SELECT field, sealed FROM connection_secrets WHERE user_id = $1 AND connection_id = $2 ORDER BY field",
        *(user_id, connection_id),
    )
    return {
        row["field"]: json.loads(keys.open(row["sealed"], about=_binding(connection_id, row["field"]))) for row in rows
    }


def forget(session: Session, user_id: str, connection_id: str) -> None:
    """Delete the secrets of the connection."""
    session.execute("DELETE FROM connection_secrets WHERE user_id = $1 AND connection_id = $2", user_id, connection_id)


def rotate(database: Database, keys: ConnectionKeys) -> int:
    """Seal every readable secret anew with a new key, and forget the keys that seal nothing any more (a shared store
    keeps the last few); returns how many secrets were sealed.

    A forgotten key seals nothing, not even in a transaction that is still open. Raises KeyMissing where the keys of a
    shared store are missing; in a store of this machine alone, a key lost for good stops no rotation, as long as there
    is any other.
    """
    with keys.alone():
        if unreadable_connections(database, keys) and (database.is_shared or not keys.ids):
            raise KeyMissing(keys.place)
        keys.begin_rotation()
        sealed = database.atomically(lambda session: _seal_anew(session, keys))
        keys.forget_all_but(_used_key_ids(database))
    return sealed


def take_over(session: Session, keys: ConnectionKeys, file: Path) -> int:
    """Copy the keys of a file into the store that several machines share: those missing there, of which, if it has keys
    already, only those with which something is sealed. Returns how many were copied."""
    return keys.take_over(file, lambda: _used_key_ids(session))


def is_any_kept(session: Session) -> bool:
    """Whether the store holds secrets of any connection."""
    return bool(session.rows("SELECT field FROM connection_secrets LIMIT 1"))


def is_sealed_with(session: Session, key_ids: Sequence[str], user_id: str, connection_id: str) -> bool:
    """Whether each secret of the connection names one of these keys as the one it is sealed with; nothing is opened.
    True if the connection has no secrets."""
    return not session.rows(
        "SELECT field FROM connection_secrets WHERE user_id = $1 AND connection_id = $2"
        " AND NOT split_part(sealed, '.', 1) = ANY($3::TEXT[])",
        *(user_id, connection_id, list(key_ids)),
    )


def unreadable_connections(session: Session, keys: ConnectionKeys) -> list[tuple[str, str]]:
    """User's id and id of each connection with secrets sealed by a key that is missing, of all users, sorted."""
    keys.look_again()
    rows = session.rows(
        "SELECT DISTINCT user_id, connection_id FROM connection_secrets"
        " WHERE NOT split_part(sealed, '.', 1) = ANY($1::TEXT[]) ORDER BY user_id, connection_id",
        keys.ids,
    )
    return [(row["user_id"], row["connection_id"]) for row in rows]


def _used_key_ids(session: Session) -> list[str]:
    rows = session.rows("SELECT DISTINCT split_part(sealed, '.', 1) AS key_id FROM connection_secrets")
    return [row["key_id"] for row in rows]


def _seal_anew(session: Session, keys: ConnectionKeys) -> int:
    count = 0
    rows = session.rows("SELECT user_id, connection_id, field, sealed FROM connection_secrets ORDER BY user_id, field")
    for row in rows:
        about = _binding(row["connection_id"], row["field"])
        try:
            text = keys.open(row["sealed"], about=about)
        except SecretsUnreadable:
            continue  # stays as it was, for keys that may be brought back
        which = {name: row[name] for name in ("user_id", "connection_id", "field")}
        set_values(session, "connection_secrets", which, sealed=keys.seal(text, about=about))
        count += 1
    return count


def _binding(connection_id: str, field: str) -> str:
    return f"{connection_id} {field}"
