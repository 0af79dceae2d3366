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
        return self.connection.id if self.is_live else FILES

    @property
    def is_live(self) -> bool:
        """Whether it is a bank that is asked, and no file."""
        return self.connection.id not in self.file_connections
