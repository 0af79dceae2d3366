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
    context = multiprocessing.get_context("spawn")

    def request_stop(_number: int, _frame: FrameType | None) -> None:
        until.set()

    before = {number: signal.signal(number, request_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    said = context.Semaphore(0)

    figures = TemporaryDirectory(prefix="bankdata-figures-")
    os.environ[FOLDER] = figures.name

    # By place: when the process there showed last that it is not frozen; 0 while it starts
    beats = context.Array("d", count, lock=False)

    def begin(place: int) -> "multiprocessing.process.BaseProcess":
        beats[place] = 0.0
        process = context.Process(
            target=_serve, args=(settings, listener, said, sends_webhooks, beats, place), name="bankdata worker"
        )
        process.start()
        return process

    processes, watch = [begin(place) for place in range(count)], Watch()
    is_ready = False
    try:
        while not until.is_set():
            if not is_ready and said.acquire(block=False):
                is_ready = True
                ready()
            ended = wait([process.sentinel for process in processes], timeout=LOOK_EVERY)
            if ended and not until.wait(RESTART_PAUSE):
                for place, process in enumerate(processes):
                    if not process.is_alive():
                        log.warning("a worker ended with code %s; another one takes its place", process.exitcode)
                        mark_process_dead(process.pid, figures.name)  # type: ignore[no-untyped-call]
                        processes[place] = begin(place)
            watch.look(time.monotonic())
            for place, process in enumerate(processes):
                if watch.is_frozen(beats[place]):
                    log.warning("a worker has stood still for %.0f seconds, and is killed", FROZEN_AFTER)
                    process.kill()
                    beats[place] = 0.0
    finally:
        for process in processes:
            process.terminate()
        end = time.monotonic() + END_WITHIN
        for process in processes:
            process.join(max(0.0, end - time.monotonic()))
            process.kill()
        figures.cleanup()
        for number, handler in before.items():
            signal.signal(number, handler)


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
    from handlers.http.steps.rate_limit import CountsUnusable
    from handlers.server import run as serve
    from handlers.services import open_services

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
