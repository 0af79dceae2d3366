"""What is due beside the syncs themselves: after an import, every minute and every day."""

import threading
from collections.abc import Callable, Sequence
from datetime import date, timedelta

from msgspec import Struct

from handlers.work.clock import Clock
from handlers.work.clock_watch import ClockWatch
from handlers.work.sync.detection import detect_after_import, detect_for_new_day
from handlers.work.sync.forecasts.basis import find_ahead
from storage import jobs
from storage.bank_access import connection_attempts
from storage.changes import feed
from storage.changes.incarnation import Life
from storage.database import Database, Store
from storage.events import outbox
from storage.importing import file_imports
from storage.webhooks import deliveries


class Housekeeping(Struct, frozen=True, kw_only=True):
    """Keeps ahead what users will ask for, and forgets what is too old.

    `looking` gives the ids of the users whose data are in memory. `settle_keys` looks after the keys of bank
    connections, `sweep` removes what has expired of sign-ins and tokens. Once `stopped` is set, nothing more is begun.
    """

    store: Store
    clock: Clock
    clock_watch: ClockWatch
    life: Life
    looking: Callable[[], Sequence[str]]
    settle_keys: Callable[[], object]
    sweep: Callable[[], object]
    stopped: threading.Event

    def after_import(self, user_id: str) -> None:
        """Detect the user's recurring payments again; and if their data are in memory, so that they are likely to ask
        soon, find the flows for their forecast, too."""
        today, looking = self.clock_watch.today(), self.looking()
        detect_after_import(self.store.of(user_id), [user_id], today=today)
        find_ahead(self.store.of, [user_id] if user_id in looking else [], today=today, is_over=self.stopped.is_set)

    def each_minute(self) -> None:
        """Look at the clock, at the store's incarnation and at the keys; remove what has expired, unless the clock is
        off."""
        self.clock_watch.look()
        self.life.look_again()
        self.settle_keys()
        if not self.clock_watch.is_off():
            self.sweep()

    def begin_day(self, today: date) -> None:
        """Forget what is too old, and detect for this day the recurring payments of the users whose data are in
        memory."""
        everybody, now = self.store.for_everybody(), self.clock.now()
        file_imports.forget(everybody, before=now - file_imports.KEPT_FOR)
        connection_attempts.forget(everybody, now=now)
        feed.forget_removed(everybody, before=now - feed.REMEMBERED_FOR)
        outbox.forget(everybody, before=now - outbox.REMEMBERED_FOR)
        deliveries.forget(everybody, before=now - outbox.REMEMBERED_FOR, now=now)
        looking = self.looking()
        detect_for_new_day(everybody, looking, today=today, is_over=self.stopped.is_set)
        find_ahead(self.store.of, looking, today=today, is_over=self.stopped.is_set)


def watch_clock(everybody: Database, clock: Clock, *, cooldown: timedelta) -> tuple[ClockWatch, Callable[[], None]]:
    """The watch over this machine's clock, and the function that forgets pauses of syncs that a wrong clock has set:
    no pause is longer than `cooldown`. The watch calls it whenever the clock was set."""

    def forget_impossible_moments() -> None:
        jobs.forget_impossible_pauses(everybody, now=clock.now() - watch.apart(), cooldown=cooldown)

    def note_set_clock() -> None:
        forget_impossible_moments()
        deliveries.make_due(everybody, now=clock.now())

    watch = ClockWatch(everybody, clock, on_set=note_set_clock)
    return watch, forget_impossible_moments
