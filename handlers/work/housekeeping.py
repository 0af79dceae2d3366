"""What is due beside the syncs themselves: after an import, every minute and every day."""

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from functools import partial

from msgspec import Struct

from handlers.work.clock import Clock
from handlers.work.clock_watch import ClockWatch
from handlers.work.sync.detection import detect_after_import, detect_for_new_day
from handlers.work.sync.forecasts.basis import find_ahead
from handlers.work.sync.notices.ledgers import look_at_ledgers
from storage import jobs, store_facts
from storage.bank_access import connection_attempts
from storage.boundary import contain
from storage.changes import feed
from storage.changes.incarnation import Life
from storage.database import Database, Store, StoreUnavailable
from storage.events import outbox
from storage.importing import file_imports
from storage.notices import looks, stored
from storage.notices.ways import deliveries as letters
from storage.webhooks import deliveries

IN_USE_AT = "housekeeping was last done, UTC"
RESTS_SINCE = "housekeeping deletes nothing for a day since, UTC"
NOTED_EVERY = timedelta(hours=1)
LEAP = timedelta(days=30)  # of a clock between two looks at the store, which may be one that is wrong
RESTS_FOR = timedelta(days=1)

log = logging.getLogger("bankdata")


class Housekeeping(Struct, frozen=True, kw_only=True):
    """Keeps ahead what users will ask for, and forgets what is too old.

    `looking` gives the ids of the users whose data are in memory. `tell_operators` says what the server lacks,
    `settle_keys` looks after the keys of bank
    connections, `sweep` removes what has expired of sign-ins and tokens. Once `stopped` is set, nothing more is begun.
    """

    store: Store
    clock: Clock
    clock_watch: ClockWatch
    life: Life
    looking: Callable[[], Sequence[str]]
    tell_operators: Callable[[], object]
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
        """Look at the clock, at the store's incarnation and at the keys; unless the clock is off, remove what has
        expired, if it has not leapt, and tell operators what the server lacks."""
        self.clock_watch.look()
        self.life.look_again()
        self.settle_keys()
        if self.clock_watch.is_off():
            return
        if self._may_delete():
            self.sweep()
        self.tell_operators()

    def look_due(self) -> None:
        """Look at the data of those to whom something may be due today, and soon after an import whether ledgers add
        up."""
        today = self.clock_watch.today()
        for due in looks.due(self.store.for_everybody(), today=today):
            if self.stopped.is_set():
                return
            own = self.store.of(due.user_id)
            with contain(log, "looks at what to tell go on after an error", passes=(StoreUnavailable,)):
                if not looks.take(own, due, today=today):
                    continue
                if due.is_whole:
                    detect_after_import(own, [due.user_id], today=today)
                else:
                    own.atomically(partial(look_at_ledgers, user_id=due.user_id, today=today))

    def begin_day(self, today: date) -> None:
        """Forget what is too old, and detect for this day the recurring payments of the users whose data are in
        memory."""
        everybody, now = self.store.for_everybody(), self.clock.now()
        if self._may_delete():
            file_imports.forget(everybody, before=now - file_imports.KEPT_FOR)
            connection_attempts.forget(everybody, now=now)
            feed.forget_removed(everybody, before=now - feed.REMEMBERED_FOR)
            outbox.forget(everybody, before=now - outbox.REMEMBERED_FOR)
            stored.forget(everybody, before=now - stored.REMEMBERED_FOR)
            deliveries.forget(everybody, before=now - outbox.REMEMBERED_FOR, now=now)
            letters.forget(everybody, now=now)
        looking = self.looking()
        detect_for_new_day(everybody, looking, today=today, is_over=self.stopped.is_set)
        find_ahead(self.store.of, looking, today=today, is_over=self.stopped.is_set)

    def _may_delete(self) -> bool:
        """Whether what is old may be deleted. Not for a day after the clock has leapt by more than LEAP since the store
        was last in use: either nobody has used it meanwhile, which is no hurry, or the clock is wrong, which somebody
        can set right before anything is lost."""
        everybody, now = self.store.for_everybody(), self.clock.now()
        last, rests = (_moment(store_facts.recall(everybody, name)) for name in (IN_USE_AT, RESTS_SINCE))
        if last is not None and abs(now - last) > LEAP:
            log.warning(
                "the clock is %d days off the store's last use: nothing is deleted for a day", (now - last).days
            )
            store_facts.remember(everybody, RESTS_SINCE, now.isoformat())
            rests = now
        if last is None or abs(now - last) >= NOTED_EVERY:
            store_facts.remember(everybody, IN_USE_AT, now.isoformat())
        return rests is None or abs(now - rests) >= RESTS_FOR


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text is not None else None


def watch_clock(everybody: Database, clock: Clock, *, cooldown: timedelta) -> tuple[ClockWatch, Callable[[], None]]:
    """The watch over this machine's clock, and the function that forgets pauses of syncs that a wrong clock has set:
    no pause is longer than `cooldown`. The watch calls it whenever the clock was set."""

    def forget_impossible_moments() -> None:
        jobs.forget_impossible_pauses(everybody, now=clock.now() - watch.apart(), cooldown=cooldown)

    def note_set_clock() -> None:
        forget_impossible_moments()
        deliveries.make_due(everybody, now=clock.now())
        letters.make_due(everybody, now=clock.now())

    watch = ClockWatch(everybody, clock, on_set=note_set_clock)
    return watch, forget_impossible_moments
