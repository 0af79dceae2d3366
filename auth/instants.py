"""The present instant as the rules of this room compare it: with a zone. The clock itself belongs to the edge."""

from collections.abc import Callable
from datetime import datetime

from storage.oauth.moments import aware

Now = Callable[[], datetime]


def with_zone(now: Now) -> Now:
    """The same clock; what it keeps without a zone is UTC, as in the store."""
    return lambda: aware(now())
