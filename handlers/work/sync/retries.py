"""When a source that could not be reached is asked again."""

from datetime import timedelta

IN_JOB_MAX = timedelta(seconds=60)  # a source that asks for a longer pause ends the job, and is asked again after it
PAUSE_FIRST = timedelta(minutes=5)  # doubled with each further failure
PAUSE_MAX = timedelta(hours=6)


def pause_after(failures: int) -> timedelta:
    """How long a source rests after a failure that follows `failures` others in a row: five minutes, doubled for each
    of these, six hours at most."""
    return min(PAUSE_FIRST * (1 << min(failures, 10)), PAUSE_MAX)
