"""The change of a password, in whichever way: what the old one has opened ends with it."""

from collections.abc import Callable
from dataclasses import dataclass

from auth.instants import Now
from auth.people.sessions import Browser, Sessions
from auth.record import Deed
from auth.security_events import Events
from storage import users
from storage.database import Database, Session
from storage.oauth import links
from storage.users import User


@dataclass(eq=False)
class PasswordChange:
    """Sets passwords, tells their users, and records it as their deed."""

    _database: Database
    _sessions: Sessions
    _events: Events
    _now: Now

    def set(
        self,
        user: User,
        password_hash: str,
        deed: Deed,
        *,
        only_if: Callable[[Session], bool] = lambda _session: True,
        but: Browser | None = None,
    ) -> bool:
        """Set the password if `only_if` says so in the same transaction, which also ends the user's browser sessions,
        except the one of `but`, and the links that let in as them or set their password. False where it does not."""

        def work(session: Session) -> bool:
            session.changes(user.id)
            if not only_if(session):
                return False
            users.set_password_hash(session, user.id, password_hash)
            links.end_of_user(session, user.id, now=self._now())
            self._sessions.end_in(session, user.id, but=but)
            self._events.tell(session, user.id, deed)
            return True

        is_set = self._database.atomically(work)
        if is_set:
            # Also what a sign-in under way has stored meanwhile; one that stores later sees that the hash is another
            self._sessions.end_all(user.id, but=but)
            self._events.did(user.id, deed)
        return is_set
