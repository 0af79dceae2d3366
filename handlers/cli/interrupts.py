"""Lets Ctrl-C end a command at once, except in the middle of Polars, which would take it for a crash of its own. So do
SIGTERM and a terminal that goes away: by default they end a process in which nothing is cleared up, and a copy of the
store or a PostgreSQL on the side would stay behind."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


@contextmanager
def interruptible() -> Iterator[None]:
    """A context in which Ctrl-C, and what else asks a command to end, raises KeyboardInterrupt at once in Python code,
    and as soon as Polars returns in Polars: its compiled code expects no exception, and a person would see a panic with
    a backtrace instead of "Aborted!". Changes nothing outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is interrupted
        return
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, _hang_up)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def first_interrupt(act: Callable[[], None]) -> Iterator[None]:
    """A context in which the first Ctrl-C, or other request to end, calls `act` while the work goes on; the second one
    ends the work as usual. Changes nothing outside the main thread, which alone is interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def once(_number: int, _frame: FrameType | None) -> None:
        restore()
        act()

    for number in before:
        signal.signal(number, once)
    try:
        yield
    finally:
        restore()


def _hang_up(_number: int, _frame: FrameType | None) -> None:
    signal.raise_signal(signal.SIGTERM)  # to a server this is another request than to a command


def die_if_told() -> None:
    """End this process by SIGTERM if that is what interrupted its command, so that whoever sent it sees that it was
    heeded."""
    if _told:  # pragma: no cover - the process ends before anything is counted
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)


_told: list[int] = []  # the SIGTERM that interrupted a command


def _interrupt(number: int, frame: FrameType | None) -> None:
    if number == signal.SIGTERM:
        _told.append(number)
    caller = _caller_of_polars(frame)
    if caller is None:
        raise KeyboardInterrupt
    caller.f_trace = _raise  # on the next line of the caller, or when it returns
    sys.settrace(lambda *_: None)


def _caller_of_polars(frame: FrameType | None) -> FrameType | None:
    """The frame of the function that called Polars; None if Polars is not running."""
    caller = None
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] == "polars":
            caller = frame.f_back
        frame = frame.f_back
    return caller


def _raise(*_: object) -> NoReturn:  # pragma: no cover - a trace function, which no other traces
    sys.settrace(None)
    raise KeyboardInterrupt
