"""What a client hands back to read on: where it stands in a feed of changes, signed so that nobody makes one up."""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

import orjson

from handlers.http.errors import BadRequest, Gone
from storage.changes.feed import REMEMBERED_FOR, Position
from storage.changes.incarnation import Incarnation

SIGNATURE_BYTES = 16
AFTER_ALL = "~"  # stands after every id
RENEWED_AFTER = timedelta(days=1)  # while nothing is new
NOT_GENUINE = "cursor: was not given by this operation to this user"
EXPIRED = "This cursor is of no use any more: start again without it, and drop what does not come then"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedCursor:
    """Everything of states up to `base` is known. Of what is newer it is told what stands up to the position of `state`
    and `id`, and of what is gone only since the state `floor`. `since` is when the base was known, in seconds."""

    base: int
    state: int
    id: str
    floor: int
    since: int

    @property
    def position(self) -> Position:
        """How far has been read."""
        return Position(self.state, self.id)

    @classmethod
    def at_rest(cls, state: int, now: datetime) -> "FeedCursor":
        """Everything up to this state is known."""
        return cls(base=state, state=state, id=AFTER_ALL, floor=state, since=int(now.timestamp()))

    @classmethod
    def fresh(cls, state: int, now: datetime) -> "FeedCursor":
        """Nothing is known; what is gone before this state was never told."""
        return cls(base=-1, state=-1, id="", floor=state, since=int(now.timestamp()))

    def may_stay(self, state: int | None, now: datetime) -> bool:
        """Whether a client may go on with this cursor: everything up to this present state is known, and the cursor so
        young that it need not be renewed yet."""
        return self.base == self.state == state and now.timestamp() - self.since < RENEWED_AFTER.total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursors:
    """The cursors of one kind of feed, one user and what they may read of it (`selection`)."""

    incarnation: Incarnation
    kind: str
    user_id: str
    selection: object

    def written(self, cursor: FeedCursor) -> str:
        """The cursor as a client keeps it."""
        at = (cursor.base, cursor.state, cursor.id, cursor.floor, cursor.since)
        said = orjson.dumps([*at, self._digest(), self.incarnation.id])
        return _encoded(self._signature(said) + said)

    def read(self, text: str, now: datetime) -> FeedCursor:
        """The cursor that a client hands back; BadRequest for one that is not genuine, Gone for one that is of another
        selection or grant, too old, or from before a restore."""
        try:
            content = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        except ValueError as error:
            raise BadRequest(NOT_GENUINE) from error
        if _encoded(content) != text:  # one spelling for each
            raise BadRequest(NOT_GENUINE)
        signature, said = content[:SIGNATURE_BYTES], content[SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._signature(said)):
            raise BadRequest(NOT_GENUINE)
        base, state, id_, floor, since, digest, life = orjson.loads(said)
        is_old = since < (now - REMEMBERED_FOR).timestamp()
        if is_old or (digest, life) != (self._digest(), self.incarnation.id):
            raise Gone(EXPIRED)
        return FeedCursor(base=base, state=state, id=id_, floor=floor, since=since)

    def _signature(self, said: bytes) -> bytes:
        about = orjson.dumps([self.kind, self.user_id])
        return hmac.digest(self.incarnation.key, about + b"\n" + said, "sha256")[:SIGNATURE_BYTES]

    def _digest(self) -> str:
        return sha256(orjson.dumps(self.selection)).hexdigest()[:16]


def _encoded(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()
