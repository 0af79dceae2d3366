"""Which life of the store this is. A restored backup goes another way from the same states of users' data, so that what
a client was told in the one life says nothing in the other."""

from dataclasses import dataclass
from secrets import token_hex

from storage import store_facts
from storage.database import Store

LIFE = "incarnation"  # left out of backups (`Store.copy_to`): each copy begins a life of its own
PLACE = "place of the incarnation"
KEY = "key of cursors"


@dataclass(frozen=True, slots=True)
class Incarnation:
    """The life of an open store, and the key with which it signs what clients hand back to it."""

    id: str
    key: bytes


def present(store: Store) -> Incarnation:
    """The life of this store: a new one where it is opened at another place than last time."""
    place = _place(store)
    with store.migrating() as session:  # of several processes that start at once one begins it
        life, key = store_facts.recall(session, LIFE), store_facts.recall(session, KEY)
        if life is None or store_facts.recall(session, PLACE) != place:
            life = token_hex(8)
            store_facts.remember(session, LIFE, life)
            store_facts.remember(session, PLACE, place)
        if key is None:
            key = token_hex(32)
            store_facts.remember(session, KEY, key)
    return Incarnation(life, bytes.fromhex(key))


def _place(store: Store) -> str:
    """What another one has that was copied from this one: the file's number in its file system; of a database its
    number, that of a table and the time line of its log, which a restore from the log ends."""
    if store.path is not None:
        return str(store.path.stat().st_ino)
    [row] = store.for_everybody().rows(
        "SELECT concat_ws('/', oid::TEXT, 'users'::REGCLASS::OID::TEXT,"
        " substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)) AS place"
        " FROM pg_database WHERE datname = current_database()"
    )
    return str(row["place"])
