"""Serves one socket with several processes, which the process that was started by hand starts, watches and ends."""

import logging
import logging.config
import math
import multiprocessing
import multiprocessing.process
import multiprocessing.synchronize
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, MutableSequence
from functools import partial
from multiprocessing.connection import wait
from tempfile import TemporaryDirectory
from types import FrameType

from prometheus_client.multiprocess import mark_process_dead

from handlers import logs
from handlers.metrics import FOLDER
from handlers.settings import Settings
from storage.boundary import begin_thread
from storage.database import StoreError

LOOK_EVERY = 0.2  # seconds
RESTART_PAUSE = 1.0  # seconds before a process that died is followed by another
END_WITHIN = 9.0  # seconds for all processes that were asked to end; after that they are killed
BEAT_EVERY = 1.0
FROZEN_AFTER = 20.0  # seconds without a beat, then a process is killed and replaced

log = logging.getLogger("bankdata")

Beats = MutableSequence[float]


def run(
    settings: Settings,
    count: int,
    *,
    listener: socket.socket,
    ready: Callable[[], None],
    until: threading.Event,
    sends_webhooks: bool = False,
) -> None:
    """Serve in `count` processes until SIGINT or SIGTERM, or until the event `until` is set. A process that dies or
    stands still is replaced. `ready` is called once when the first one answers requests.

    They are new processes, not forks, because neither Polars nor connections to a database survive a fork; and they
    share one socket, because requests waiting at a process's own socket would be lost if it died.
    """
    logging.config.dictConfig(logs.configuration(settings.log_level, settings.log_format))

    def request_stop(_number: int, _frame: FrameType | None) -> None:
        until.set()

    before = {number: signal.signal(number, request_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with TemporaryDirectory(prefix="bankdata-figures-") as figures:
            os.environ[FOLDER] = figures
            workers = _Workers(settings, count, listener, figures, sends_webhooks=sends_webhooks)
            try:
                workers.keep_serving(ready, until)
            finally:
                workers.end()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Workers:
    """The processes that serve, each in its place."""

    def __init__(
        self, settings: Settings, count: int, listener: socket.socket, figures: str, *, sends_webhooks: bool
    ) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._said = self._context.Semaphore(0)  # released by each process that answers requests
        # By place: when the process there showed last that it is not frozen; 0 while it starts
        self._beats = self._context.Array("d", count, lock=False)
        self._begin = partial(_serve, settings, listener, self._said, sends_webhooks, self._beats)
        self._figures = figures
        self._processes = [self._started(place) for place in range(count)]
        self._watch = Watch()

    def _started(self, place: int) -> "multiprocessing.process.BaseProcess":
        self._beats[place] = 0.0
        process = self._context.Process(target=self._begin, args=(place,), name="bankdata worker")
        process.start()
        return process

    def keep_serving(self, ready: Callable[[], None], until: threading.Event) -> None:
        """Replace processes that die or stand still, until the event is set."""
        is_ready = False
        while not until.is_set():
            if not is_ready and self._said.acquire(block=False):
                is_ready = True
                ready()
            has_any_ended = wait([process.sentinel for process in self._processes], timeout=LOOK_EVERY)
            if has_any_ended and not until.wait(RESTART_PAUSE):
                self._replace_ended()
            self._kill_frozen()

    def _replace_ended(self) -> None:
        for place, process in enumerate(self._processes):
            if not process.is_alive():
                log.warning("a worker ended with code %s; another one takes its place", process.exitcode)
                mark_process_dead(process.pid, self._figures)  # type: ignore[no-untyped-call]
                self._processes[place] = self._started(place)

    def _kill_frozen(self) -> None:
        self._watch.look(time.monotonic())
        for place, process in enumerate(self._processes):
            if self._watch.is_frozen(self._beats[place]):
                log.warning("a worker has stood still for %.0f seconds, and is killed", FROZEN_AFTER)
                process.kill()
                self._beats[place] = 0.0

    def end(self) -> None:
        """End all processes, and kill those that have not ended in time."""
        for process in self._processes:
            process.terminate()
        end = time.monotonic() + END_WITHIN
        for process in self._processes:
            process.join(max(0.0, end - time.monotonic()))
            process.kill()


class Watch:
    """Tells which processes stand still, by the times of their beats. While the watcher itself stood still, as with the
    whole machine, nobody else is to blame."""

    def __init__(self) -> None:
        self._looked_at = self._awake_since = -math.inf

    def look(self, now: float) -> None:
        """Note that the watcher is awake at this time, in seconds."""
        if now - self._looked_at > FROZEN_AFTER / 2:
            self._awake_since = now
        self._looked_at = now

    def is_frozen(self, beat: float) -> bool:
        """Whether a process whose last beat was at this time stands still; 0 for one that starts."""
        return beat > 0 and self._looked_at - max(beat, self._awake_since) > FROZEN_AFTER


def _serve(
    settings: Settings,
    listener: socket.socket,
    said: "multiprocessing.synchronize.Semaphore",
    sends_webhooks: bool,
    beats: Beats,
    place: int,
) -> None:
    """Serve in one of the worker processes; it ends when the process that started it is gone, and with a line in the
    log where it cannot begin."""
    from handlers.server import run as serve
    from handlers.web.steps.rate_limit import CountsUnusable
    from handlers.work.services import open_services

    logging.config.dictConfig(logs.configuration(settings.log_level, settings.log_format))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one decides what happens
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # so does a terminal that goes away
    begin_thread("end with parent", _end_with_parent)
    begin_thread("beats", partial(_keep_beating, beats, place))
    try:
        services = open_services(settings, for_server=True, sends_webhooks=sends_webhooks)
        serve(services, listener=listener, ready=said.release, takes_commands=False)
    except (CountsUnusable, StoreError, OSError) as error:
        log.error("%s", error)
        sys.exit(1)


def _keep_beating(beats: Beats, place: int) -> None:
    while True:
        beats[place] = time.monotonic()
        time.sleep(BEAT_EVERY)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker is started by another process"
    wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
