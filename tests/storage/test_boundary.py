"""The boundary: what escapes work is in the log, and what belongs to somebody else gets through."""

import asyncio
import logging
import re
import threading
from collections.abc import Iterator
from contextvars import ContextVar, copy_context
from decimal import Decimal
from pathlib import Path
from queue import Queue
from typing import Any

import polars as pl
import pytest
from polars.exceptions import PanicException

from storage.boundary import begin_thread, contain, undo_on_failure
from storage.database import StoreUnavailable
from storage.engines.asked_states import AskedStates

log = logging.getLogger("bankdata.test")
ROOT = Path(__file__).parents[2]
WHERE_STRANGERS_END = {
    "handlers/web/outermost.py": 1,  # requests
    "connectors/parser_process/answering.py": 1,  # files, in a process of their own
    "connectors/sources/fints/dialog.py": 1,  # python-fints
    "auth/people/passkeys.py": 1,  # webauthn
}


@pytest.mark.requirement("decision 146")
def test_a_failure_ends_at_the_boundary_with_its_traceback_and_the_work_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    turns = []
    for turn in (1, 2, 3):
        with contain(log, "turn %d failed", turn):
            turns.append(1 / (turn - 2))
    assert turns == [-1, 1]
    [said] = caplog.records
    assert (said.getMessage(), said.levelname) == ("turn 2 failed", "ERROR")
    assert said.exc_info is not None
    assert said.exc_info[0] is ZeroDivisionError


@pytest.mark.requirement("decision 146")
def test_a_panic_of_polars_is_a_failure_like_any_other(caplog: pytest.LogCaptureFixture) -> None:
    with contain(log, "failed"):
        pl.Series([Decimal("NaN")], dtype=pl.Decimal(38, 2))
    [said] = caplog.records
    assert said.exc_info is not None
    assert said.exc_info[0] is PanicException


@pytest.mark.requirement("decision 146")
@pytest.mark.parametrize("failure", [KeyError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_passed_on_and_what_ends_a_process_get_through_unlogged(
    caplog: pytest.LogCaptureFixture, failure: type[BaseException]
) -> None:
    with pytest.raises(failure), contain(log, "failed", passes=(LookupError,)):
        raise failure
    assert caplog.messages == []


@pytest.mark.requirement("decision 146")
def test_a_store_that_is_away_is_a_line_without_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    with contain(log, "failed"):
        raise StoreUnavailable
    assert [(each.levelname, each.getMessage(), each.exc_info) for each in caplog.records] == [
        ("WARNING", "failed", None)
    ]


@pytest.mark.requirement("decision 146")
@pytest.mark.parametrize(("failure", "level"), [(ZeroDivisionError, "INFO"), (StoreUnavailable, "DEBUG")])
def test_a_failure_that_is_no_news_leaves_a_line_too_which_only_a_close_look_shows_of_what_is_still_away(
    caplog: pytest.LogCaptureFixture, failure: type[Exception], level: str
) -> None:
    caplog.set_level("DEBUG", "bankdata.test")
    with contain(log, "%s failed", "it", is_expected=lambda: True):
        raise failure
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        (level, f"it failed: {failure.__name__}")
    ]


@pytest.mark.requirement("decision 146")
def test_a_thread_carries_what_its_beginning_carried_and_says_why_it_ended(caplog: pytest.LogCaptureFixture) -> None:
    whose: ContextVar[str] = ContextVar("whose", default="nobody's")
    seen: list[str] = []

    def work() -> None:
        seen.append(whose.get())
        raise ValueError("why")

    def request() -> None:
        whose.set("mia's")
        begin_thread("of the test", work).join()

    copy_context().run(request)
    begin_thread("of nobody", lambda: seen.append(whose.get())).join()
    assert seen == ["mia's", "nobody's"]
    assert caplog.messages == ["the thread of the test has ended"]


@pytest.mark.requirement("decision 146")
def test_what_was_begun_is_undone_by_a_failure_alone() -> None:
    undone: list[str] = []

    def work() -> str:
        with undo_on_failure(lambda: undone.append("returned")):
            return "done"

    assert work() == "done"
    with pytest.raises(KeyboardInterrupt), undo_on_failure(lambda: undone.append("failed")):
        raise KeyboardInterrupt
    assert undone == ["failed"]


@pytest.mark.requirement("decision 146")
def test_a_connection_that_failed_to_open_in_its_thread_is_opened_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("storage.engines.asked_states.OPEN_AGAIN_SECONDS", 0.0)
    tries: Queue[threading.Thread] = Queue()

    def connect() -> Any:
        tries.put(threading.current_thread())
        raise RuntimeError("nobody foresaw this")

    states = AskedStates(connect)
    for _ in (1, 2):
        assert asyncio.run(states.of("u1")) is None
        tries.get(timeout=60).join()
    assert caplog.messages == ["the thread states has ended"] * 2


@pytest.mark.requirement("decision 146")
def test_every_other_place_names_what_it_catches_and_begins_no_thread_of_its_own() -> None:
    broad = {name: text.count("except Exception") + len(_BROAD.findall(text)) for name, text in _product()}
    assert {name: count for name, count in broad.items() if count} == WHERE_STRANGERS_END
    bare = [name for name, text in _product() if "threading.Thread(" in text]
    # connectors reach no store: their thread runs an event loop, whose failures are those of the caller
    assert sorted(bare) == ["connectors/outgoing_http.py", "storage/boundary.py"]


_BROAD = re.compile(r"except:|except BaseException|suppress\((?:Base)?Exception\)")


def _product() -> Iterator[tuple[str, str]]:
    for room in ("handlers", "storage", "auth", "connectors", "analytics"):
        for path in (ROOT / room).rglob("*.py"):
            yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
