"""Who tells of bookings: a connection of a user, within one transaction."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from storage.connections import StoredConnection
from storage.database import Transaction
from storage.users import User

FILES = "files"  # the source of all files: their ids are chosen by whoever wrote them


@dataclass(frozen=True, slots=True)
class Teller:
    """The connection of a user, and when it tells what is imported; `file_connections` are those that read files."""

    session: Transaction
    user: User
    connection: StoredConnection
    now: datetime
    file_connections: Collection[str]

    @property
    def source(self) -> str:
        """Under whose name ids are remembered."""
        return self.source_of(self.connection.id)

    @property
    def is_live(self) -> bool:
        """Whether it is a bank that is asked, and no file."""
        return self.source != FILES

    def source_of(self, connection_id: str) -> str:
        """The source of any connection of the user."""
        return FILES if connection_id in self.file_connections else connection_id
