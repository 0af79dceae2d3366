"""Ctrl-C ends a command at once, but not in the middle of Polars, which takes it for a crash of its own."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt where Python runs, and after Polars where Polars runs: its compiled code expects
    no exception while it reads a list, and a person would see a panic with a backtrace instead of "Aborted!"."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is interrupted
        return
    before = signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def first_interrupt(act: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C calls `act` and the work goes on; the next one ends it as ever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def once(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        act()

    signal.signal(signal.SIGINT, once)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt(_number: int, frame: FrameType | None) -> None:
    caller = _caller_of_polars(frame)
    if caller is None:
        raise KeyboardInterrupt
    caller.f_trace = _raise  # on the next line of the caller, or when it returns
    sys.settrace(lambda *_: None)


def _caller_of_polars(frame: FrameType | None) -> FrameType | None:
    """The function that waits for Polars; None when nobody does."""
    caller = None
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] == "polars":
            caller = frame.f_back
        frame = frame.f_back
    return caller


def _raise(*_: object) -> NoReturn:  # pragma: no cover - a trace function, which no other traces
    sys.settrace(None)
    raise KeyboardInterrupt
