"""The cursor that a client hands back to go on in a feed of changes; it is signed so that nobody can make one up."""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime, timedelta
from hashlib import sha256

import orjson
from msgspec import Struct

from handlers.web.errors import BadRequest, Gone
from storage.changes.feed import AFTER_ALL, REMEMBERED_FOR, Position
from storage.changes.incarnation import Incarnation

SIGNATURE_BYTES = 16
RENEWED_AFTER = timedelta(days=1)  # a cursor gets renewed at this age, even if nothing is new
NOT_GENUINE = "cursor: was not given by this operation to this user"
EXPIRED = "This cursor is of no use any more: start again without it, and drop what does not come then"


class FeedCursor(Struct, frozen=True, kw_only=True):
    """A client's position in a feed. The client has all changes up to state `base` (a row added later counts as added,
    else as modified) and, of the newer ones, those up to (`state`, `place`). Rows removed in state `floor` or before
    are not reported: the client never had them, or knows. `since`, in seconds since 1970, is when the client was last
    up to date or began; from it follows when the cursor is renewed or expires."""

    base: int
    state: int
    place: str
    floor: int
    since: int

    @property
    def position(self) -> Position:
        """The position up to which the client has read."""
        return Position(self.state, self.place)

    @classmethod
    def at_rest(cls, state: int, now: datetime) -> "FeedCursor":
        """The cursor of a client that knows everything up to this state, as of now."""
        return cls(base=state, state=state, place=AFTER_ALL, floor=state, since=int(now.timestamp()))

    @classmethod
    def fresh(cls, state: int, now: datetime) -> "FeedCursor":
        """The cursor of a client that knows nothing yet; rows removed before this state need not be reported to it."""
        return cls(base=-1, state=-1, place="", floor=state, since=int(now.timestamp()))

    def may_stay(self, state: int | None, now: datetime) -> bool:
        """Whether a client may keep this cursor: it knows everything up to the present state (`state`, None if
        unknown), and the cursor is too young, less than a day, to need renewal."""
        return self.base == self.state == state and now.timestamp() - self.since < RENEWED_AFTER.total_seconds()


class Cursors(Struct, frozen=True, kw_only=True):
    """Writes and reads the cursors of one kind of feed, for one user and what they may read of it (`selection`). They
    are signed with a key of the store, and do not outlive a restore of it (`incarnation`)."""

    incarnation: Incarnation
    kind: str
    user_id: str
    selection: object

    def write(self, cursor: FeedCursor) -> str:
        """The cursor as the signed text that a client keeps and hands back."""
        at = (cursor.base, cursor.state, cursor.place, cursor.floor, cursor.since)
        said = orjson.dumps([*at, self._digest(), self.incarnation.id])
        return _encode(self._signature(said) + said)

    def read(self, text: str, now: datetime) -> FeedCursor:
        """The cursor in a text that a client hands back. Raises BadRequest for one that is not genuine, and Gone for
        one of another selection or grant, too old, or from before a restore."""
        try:
            content = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        except ValueError as error:
            raise BadRequest(NOT_GENUINE) from error
        if _encode(content) != text:  # each cursor has one spelling
            raise BadRequest(NOT_GENUINE)
        signature, said = content[:SIGNATURE_BYTES], content[SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._signature(said)):
            raise BadRequest(NOT_GENUINE)
        base, state, place, floor, since, digest, life = orjson.loads(said)
        is_old = since < (now - REMEMBERED_FOR).timestamp()
        if is_old or (digest, life) != (self._digest(), self.incarnation.id):
            raise Gone(EXPIRED)
        return FeedCursor(base=base, state=state, place=place, floor=floor, since=since)

    def _signature(self, said: bytes) -> bytes:
        about = orjson.dumps([self.kind, self.user_id])
        return hmac.digest(self.incarnation.key, about + b"\n" + said, "sha256")[:SIGNATURE_BYTES]

    def _digest(self) -> str:
        return sha256(orjson.dumps(self.selection)).hexdigest()[:16]


def _encode(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()
