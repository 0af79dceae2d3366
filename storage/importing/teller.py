"""The teller: the connection that reports bookings, within one transaction."""

from collections.abc import Collection
from datetime import datetime

from msgspec import Struct

from storage.connections import StoredConnection
from storage.database import Transaction
from storage.users import User

FILES = "files"  # the source of all files: their ids are chosen by whoever wrote them


class Teller(Struct, frozen=True):
    """The user's connection that reports what is imported, and the time of that; `file_connections` are those that read
    files."""

    session: Transaction
    user: User
    connection: StoredConnection
    now: datetime
    file_connections: Collection[str]

    @property
    def source(self) -> str:
        """The name under which ids of this source are remembered."""
        return self.connection.id if self.is_live else FILES

    @property
    def is_live(self) -> bool:
        """Whether the source is a bank that was asked, and not a file."""
        return self.connection.id not in self.file_connections
