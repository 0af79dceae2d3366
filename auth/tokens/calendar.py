"""Secret addresses of payment calendars: whoever has one can read that calendar, and nothing else."""

import re
from datetime import datetime

from auth.instants import Now
from auth.policy import Policy
from auth.secret_text import new_secret, stored_hash
from auth.security_events import Events
from storage import users
from storage.database import Database, Session
from storage.oauth import calendar
from storage.users import User

_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")  # what `new_secret` makes


class CalendarLinks:
    """Makes and ends secret addresses of calendars, and finds the user of one; each user has at most one."""

    def __init__(self, database: Database, policy: Policy, events: Events, now: Now) -> None:
        self._database = database
        self._address = f"{policy.public_url}/calendar"
        self._events = events
        self._now = now

    def make(self, user_id: str) -> str:
        """Make the user's calendar address anew and return it; it is shown only now, and an earlier one ends. Logs and
        records that."""
        secret = new_secret()

        def work(session: Session) -> None:
            calendar.replace(session, user_id, secret_hash=stored_hash(secret), now=self._now())
            self._events.tell(session, user_id, "makeCalendarLink")

        self._database.atomically(work)
        self._events.info("calendar link made", user=user_id)
        self._events.did(user_id, "makeCalendarLink")
        return f"{self._address}/{secret}/payments.ics"

    def revoke(self, user_id: str) -> bool:
        """End the user's calendar address at once, and log and record that; False where there is none."""
        if not self._database.atomically(lambda session: calendar.remove(session, user_id)):
            return False
        self._events.info("calendar link ended", user=user_id)
        self._events.did(user_id, "endCalendarLink")
        return True

    def made_at(self, user_id: str) -> datetime | None:
        """When the user's present calendar address was made; None where there is none."""
        return calendar.made_at(self._database, user_id)

    def read(self, secret: str, *, address: str) -> User | None:
        """The user whose calendar this secret opens, with the reading noted in their access record (as a refusal
        without a subscription); None where it opens none, which is logged with `address`. The store compares hashes, so
        that the time it takes tells nothing about a secret."""
        user_id = calendar.user_of(self._database, stored_hash(secret)) if _SECRET.fullmatch(secret) else None
        user = users.find(self._database, user_id) if user_id is not None else None
        if user is None or user.paused_at is not None:
            self._events.info("calendar link refused", address=address)
            return None
        self._events.did(user.id, "readCalendar", is_refused=not user.has_subscription)
        return user
