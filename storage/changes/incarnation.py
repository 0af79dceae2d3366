"""The incarnation: one life of the store. After a restore, or a failover that lost commits, the same state numbers lead
to other data, so what a client was told in one incarnation means nothing in another."""

from secrets import token_hex

from msgspec import Struct

from storage import store_facts
from storage.database import Store
from storage.notices import looks
from storage.notices.ways import deliveries as letters

LIFE = "incarnation"  # left out of backups (`Store.copy_to`): each copy begins a life of its own
PLACE = "place of the incarnation"
KEY = "key of cursors"


class Incarnation(Struct, frozen=True):
    """The id of the open store's incarnation, and the key that signs the cursors which clients hand back."""

    id: str
    key: bytes


class Life:
    """The present incarnation of an open store, which may change while the store is open: a standby is promoted, and
    one of several processes notices that first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._losses = store.losses
        self.present = of_store(store)

    @property
    def is_doubtful(self) -> bool:
        """Whether connections to the database were lost since the last look, so that it may be another one now."""
        return self._losses != self._store.losses

    def settle(self) -> None:
        """Look again if there is doubt."""
        if self.is_doubtful:
            self.look_again()

    def look_again(self) -> None:
        """Read the incarnation from the database; a file that is open stays what it is. Raises StoreUnavailable."""
        if self._store.is_shared:
            losses = self._store.losses
            self.present = of_store(self._store)
            self._losses = losses


def of_store(store: Store) -> Incarnation:
    """The incarnation of this store. A new id is stored for a new store, for a restored backup, and where a store is at
    another place than last time; the key stays as it was, if there is one."""
    everybody, place = store.for_everybody(), _place(store)
    life, at, key = (store_facts.recall(everybody, name) for name in (LIFE, PLACE, KEY))
    if life is not None and key is not None and at == place:
        return Incarnation(life, bytes.fromhex(key))
    with store.migrating() as session:  # of several processes that start at once, only one begins it
        life, key = store_facts.recall(session, LIFE), store_facts.recall(session, KEY)
        if life is None or store_facts.recall(session, PLACE) != place:
            life = token_hex(8)
            looks.past_all(session)
            letters.past_all(session)
            store_facts.remember(session, LIFE, life)
            store_facts.remember(session, PLACE, place)
        if key is None:
            key = token_hex(32)
            store_facts.remember(session, KEY, key)
    return Incarnation(life, bytes.fromhex(key))


def _place(store: Store) -> str:
    """A text that differs between a store and its copy.

    For a file: its number in the file system. For a database: its number, that of a table, and the timeline of its log,
    which ends with a restore from the log.
    """
    if store.path is not None:
        return str(store.path.stat().st_ino)
    [row] = store.for_everybody().rows(
        "SELECT concat_ws('/', oid::TEXT, 'users'::REGCLASS::OID::TEXT,"
        " substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)) AS place"
        " FROM pg_database WHERE datname = current_database()"
    )
    return str(row["place"])
