"""The leases of the jobs and uploaded files at which this process works, so that other processes leave them alone."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from secrets import token_hex

from handlers.work.clock import Clock
from storage import jobs
from storage.bank_access.sync_time_limits import LEASE
from storage.boundary import begin_thread, contain, join_threads
from storage.database import Store, StoreUnavailable
from storage.jobs import Leased

RENEW_EVERY = LEASE.total_seconds() / 3
END_EVERY = 5.0  # seconds; work that fails again and again must not ask its bank all the time
GIVE_BACK_WITHIN = 1.0  # seconds for all leases of a process that is about to end

log = logging.getLogger("bankdata.sync")


class Leases:
    """Renews the leases that this process took, under the random name `holder`, while their work goes on."""

    def __init__(self, store: Store, clock: Clock, stopped: threading.Event) -> None:
        """`stopped` ends the renewing of leases."""
        self.holder = token_hex(8)
        self._store = store
        self._clock = clock
        self._stopped = stopped
        self._held: dict[str, Leased] = {}  # changed by single dict operations, which are atomic
        self._ending: set[str] = set()  # ids of work whose lease is given back as soon as the store answers

    @contextmanager
    def keep(self, work: Leased) -> Iterator[None]:
        """A context during which the lease of this work, taken already, is renewed."""
        self._held[work.id] = work
        try:
            yield
        finally:
            self._held.pop(work.id, None)

    def has(self, id_: str) -> bool:
        """Whether this process still holds the lease of this work, as far as it knows from the last renewal."""
        return id_ in self._held

    def end_later(self, work: Leased) -> None:
        """Give back the lease of this work as soon as the store answers again, in a thread, of which each work has one
        at most."""

        def end() -> None:
            try:
                self.end_at_last(partial(self.give_back, work))
            finally:
                self._ending.discard(work.id)

        if work.id not in self._ending:
            self._ending.add(work.id)
            begin_thread("end of lease", end)

    def end_at_last(self, last: Callable[[], object]) -> None:
        """Do `last`, which ends the lease of some work, as soon as the store answers again; otherwise everybody would
        have to wait until the lease has run out. Forgotten when this process stops."""
        while not self._stopped.wait(END_EVERY):
            with suppress(StoreUnavailable):
                last()
                return

    def give_back(self, work: Leased) -> None:
        """End the lease of work at which this process is not any more, so that any may go on with it."""
        if not self.has(work.id):
            self._give_back(work)

    def give_back_held(self) -> None:
        """End the leases of all work at which this process is, because it is about to end. Each has a thread of its
        own: one of a cluster's machines may be away or silent."""

        def end(work: Leased) -> None:
            with contain(log, "the lease of job %s could not be given back", work.id, is_expected=self._stopped.is_set):
                self._give_back(work)

        ending = [begin_thread("last end of lease", partial(end, work)) for work in list(self._held.values())]
        join_threads(ending, within=GIVE_BACK_WITHIN)

    def _give_back(self, work: Leased) -> None:
        jobs.give_back(self._store.of(work.user_id), work, holder=self.holder, now=self._clock.now())

    def keep_renewing(self) -> None:
        """Renew the leases every 20 seconds until the process stops; in a thread of its own, beside other processes."""
        while not self._stopped.wait(RENEW_EVERY):
            self.renew()

    def renew(self) -> None:
        """Renew every lease of this process for another `LEASE`; one that was taken away is no longer kept."""
        for work in list(self._held.values()):
            # One of a cluster's machines may be away: leases on the others are renewed
            with contain(log, "the lease of job %s could not be renewed", work.id, is_expected=self._stopped.is_set):
                try:
                    if not jobs.renew(self._store.of(work.user_id), work, holder=self.holder, now=self._clock.now()):
                        self._held.pop(work.id, None)
                except StoreUnavailable:  # logged at the end of the process, too: another one may take the job
                    log.warning("the lease of job %s could not be renewed", work.id)
