"""The teller: whoever reports bookings in an import, which is one connection within one transaction."""

from collections.abc import Collection
from datetime import datetime

from msgspec import Struct

from storage.connections import StoredConnection
from storage.database import Transaction
from storage.users import User

FILES = "files"  # the source of all files: their ids are chosen by whoever wrote them


class Teller(Struct, frozen=True):
    """The user's connection that reports what is imported, the time of that (`now`), and the transaction of the import;
    `file_connections` are the ids of those that read files."""

    session: Transaction
    user: User
    connection: StoredConnection
    now: datetime
    file_connections: Collection[str]

    @property
    def source(self) -> str:
        """The name under which ids of this source are remembered: its connection's id, or FILES for all files alike."""
        return self.connection.id if self.is_live else FILES

    @property
    def is_live(self) -> bool:
        """Whether the source is a bank that was asked, and not a file."""
        return self.connection.id not in self.file_connections
