"""The type of clocks in this room, whose times have a zone. The clock itself is passed in from outside."""

from collections.abc import Callable
from datetime import datetime

from storage.oauth.moments import aware

Now = Callable[[], datetime]


def with_zone(now: Now) -> Now:
    """A clock whose times are marked as UTC, made of one that gives the same times without a zone."""
    return lambda: aware(now())
