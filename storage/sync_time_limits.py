"""How long a sync may take, and how long it rests after a failure."""

from datetime import timedelta

PROGRESS_MAX = timedelta(minutes=15)  # that a bank is given without getting on (decision 26)
FAILED_COOLDOWN = timedelta(minutes=2)  # before a connection whose sync failed is asked again (decision 25)
LEASE = timedelta(seconds=60)  # that whoever advances a job has it for; then another one may
