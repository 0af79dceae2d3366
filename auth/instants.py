"""The present instant as the rules of this room compare it: with a zone. The clock itself belongs to the edge."""

from collections.abc import Callable
from datetime import datetime

from storage.oauth.moments import aware

Now = Callable[[], datetime]


def with_zone(now: Now) -> Now:
    """A clock that says its zone, UTC, in place of one that keeps UTC without saying so, as the store does."""
    return lambda: aware(now())
