"""Time limits of syncs: how long one may take, how long its lease lasts, and the pause after a failure. The minimum
interval between two syncs of a connection is the setting `sync_cooldown_seconds`."""

from datetime import timedelta

PROGRESS_MAX = timedelta(minutes=15)  # without progress, until the job is given up (decision 26)
FAILED_COOLDOWN = timedelta(minutes=2)  # before the connection may be synced again after a failure (decision 25)
LEASE = timedelta(seconds=60)  # for advancing a job; unless renewed, another process may take over after it
LEASE_MAX = 2 * LEASE  # one that ends later was given by a clock that was ahead, and counts as none
COOLDOWN_MAX = timedelta(days=1)  # that can be set as the minimum interval between two syncs
