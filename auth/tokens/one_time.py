"""One-time secrets: the first use of a code or refresh token wins; a second one ends the grant and raises an alarm."""

import threading
from collections.abc import Callable
from typing import TypeVar

from auth.errors import InvalidGrant
from auth.security_events import Events
from auth.tokens.grants import Grants
from storage.database import Conflict, Database, Session, StoreUnavailable

LOCKS = 64

T = TypeVar("T")


class Reused(Exception):
    """A used code or refresh token was presented again; the grant with all its tokens has to end."""

    def __init__(self, grant_id: str) -> None:
        super().__init__(grant_id)
        self.grant_id = grant_id


class OneTime:
    """Runs the exchange of a secret (a code or refresh token) for tokens; exactly one caller wins.

    The store decides races between processes (`UPDATE ... WHERE used_at IS NULL RETURNING`); the locks, one for many
    secrets, only spare a process the conflicts.
    """

    def __init__(self, database: Database, grants: Grants, events: Events) -> None:
        self._database = database
        self._grants = grants
        self._events = events
        self._locks = [threading.Lock() for _ in range(LOCKS)]

    def exchange(self, secret_hash: str, work: Callable[[Session], T], *, kind: str, client_id: str) -> T:
        """The result of `work`, which uses the secret inside one transaction. Raises InvalidGrant, which is logged, for
        everybody but the first; where `work` raises Reused, the grant ends too; StoreUnavailable where others keep
        changing what it needs. `kind` is the name of the secret in the log and in the reason for the end: code or
        refresh token."""
        with self._locks[int(secret_hash[:8], 16) % LOCKS]:
            try:
                return self._database.atomically(work)
            except Reused as reused:
                grant_id = reused.grant_id
            except InvalidGrant as error:
                # Unknown, expired, foreign and reused look the same to the caller and different in the log
                self._events.info(f"{kind} refused", client=client_id, reason=error.reason.replace(" ", "-"))
                raise
            except Conflict:
                # Who was faster may have redeemed the secret or changed something else: nothing is known to be spent
                self._events.info(f"{kind} put off", client=client_id, reason="lost-a-race")
                raise StoreUnavailable(StoreUnavailable.__doc__) from None
            self._events.alarm(f"{kind} used twice", client=client_id, grant=grant_id)
            self._grants.revoke(grant_id, because=f"ended: {kind} used twice")
            raise InvalidGrant()
