"""What operators do to people: make them operators, pause them, and end either."""

from dataclasses import dataclass

from auth.instants import Now
from auth.people.sessions import Sessions
from auth.record import Deed
from auth.security_events import Events
from auth.tokens.access_check import AccessCheck
from storage import users
from storage.database import Database, without_zone
from storage.users import User


@dataclass(eq=False)
class Operators:
    """Changes who is an operator and who is paused; logs it, and records it for the person concerned and, where one
    did it, for the operator."""

    _database: Database
    _sessions: Sessions
    _access: AccessCheck
    _events: Events
    _now: Now

    def mark(self, user: User, *, is_operator: bool, by: User | None = None) -> None:
        """Make a user an operator, or end that. Raises LastOperator."""
        self._database.atomically(lambda session: users.set_operator(session, user.id, is_operator=is_operator))
        self.note(user, "giveOperator" if is_operator else "endOperator", by=by)

    def pause(self, user: User, *, by: User | None = None) -> None:
        """Pause a user at once: all browsers are signed out, and nobody signs in, no app reads and no bank is asked
        until `unpause`. Nothing is deleted. Raises LastOperator."""
        since = without_zone(self._now())
        self._database.atomically(lambda session: users.pause(session, user.id, since=since))
        self._sessions.end_all(user.id)
        self._access.forget()
        self.note(user, "pauseUser", by=by)

    def unpause(self, user: User, *, by: User | None = None) -> None:
        """Let a paused user, their apps and banks go on."""
        self._database.atomically(lambda session: users.pause(session, user.id, since=None))
        self._access.forget()
        self.note(user, "unpauseUser", by=by)

    def note(self, user: User, deed: Deed, *, by: User | None) -> None:
        """Log and record a deed for the person concerned and for the operator."""
        self._events.info(deed, user=user.id, by=by.id if by is not None else "command")
        for each in {user.id, *([by.id] if by is not None else [])}:
            self._events.did(each, deed)
