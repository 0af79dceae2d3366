"""Ids of events: places in what has happened to one user's data, signed so that nobody makes one up."""

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
    """Those of one user in one life of the store."""

    incarnation: Incarnation
    user_id: str

    def written(self, sequence: int, moment: datetime) -> str:
        """The id of what happened there at this moment."""
        said = f"{sequence}-{int(moment.replace(tzinfo=UTC).timestamp())}"
        return f"evt_{said}-{self._signature(said)}"

    def read(self, text: str, now: datetime) -> int | None:
        """The place that an id names; None for one of another user or another life of the store, for one that is too
        old, and for what is none."""
        found = _ID.fullmatch(text)
        if found is None or not hmac.compare_digest(found[3], self._signature(f"{found[1]}-{found[2]}")):
            return None
        return int(found[1]) if int(found[2]) >= (now - REMEMBERED_FOR).replace(tzinfo=UTC).timestamp() else None

    def _signature(self, said: str) -> str:
        about = f"event\n{self.incarnation.id}\n{self.user_id}\n{said}"
        return hmac.digest(self.incarnation.key, about.encode(), "sha256").hex()[:SIGNATURE_CHARACTERS]
