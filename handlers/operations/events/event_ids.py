"""Ids of events: signed positions in the sequence of one user's events, so that nobody can make one up."""

import hmac
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from storage.changes.incarnation import Incarnation
from storage.events.outbox import REMEMBERED_FOR

SIGNATURE_CHARACTERS = 24
_ID = re.compile(rf"evt_([0-9]{{1,19}})-([0-9]{{1,12}})-([0-9a-f]{{{SIGNATURE_CHARACTERS}}})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventIds:
    """Writes and reads the event ids of one user in one life of the store (`incarnation`)."""

    incarnation: Incarnation
    user_id: str

    def written(self, sequence: int, moment: datetime) -> str:
        """The id of the event with this sequence number and moment."""
        said = f"{sequence}-{int(moment.replace(tzinfo=UTC).timestamp())}"
        return f"evt_{said}-{self._signature(said)}"

    def read(self, text: str, now: datetime) -> int | None:
        """The sequence number in an id. None for a text that is no id, and for an id of another user, of another life
        of the store, or too old."""
        found = _ID.fullmatch(text)
        if found is None or not hmac.compare_digest(found[3], self._signature(f"{found[1]}-{found[2]}")):
            return None
        return int(found[1]) if int(found[2]) >= (now - REMEMBERED_FOR).replace(tzinfo=UTC).timestamp() else None

    def _signature(self, said: str) -> str:
        about = f"event\n{self.incarnation.id}\n{self.user_id}\n{said}"
        return hmac.digest(self.incarnation.key, about.encode(), "sha256").hex()[:SIGNATURE_CHARACTERS]
