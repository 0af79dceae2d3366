"""What the log looks like: text for people, JSON for machines."""

import json
import logging
import sys
import threading
from contextvars import copy_context

import pytest

from handlers import logs
from handlers.web import request_id
from storage.boundary import begin_thread


def record(*, exception: bool = False) -> logging.LogRecord:
    made = logging.LogRecord("bankdata.auth", logging.WARNING, "", 0, "wrong password of %s", ("Straße\n",), None)
    made.created = 1_795_000_000.25
    if exception:
        try:
            raise RuntimeError("why")
        except RuntimeError:
            made.exc_info = sys.exc_info()
    return made


@pytest.mark.requirement("monitoring.logs")
def test_an_event_is_one_json_object_on_one_line() -> None:
    line = logs.JsonLines().format(record())
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2026-11-18T11:06:40.250+00:00",
        "level": "warning",
        "logger": "bankdata.auth",
        "message": "wrong password of Straße\n",
    }


@pytest.mark.requirement("monitoring.logs")
def test_an_event_of_a_request_has_its_id_and_a_failure_its_traceback() -> None:
    def line() -> str:
        request_id.begin([(b"traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")])
        return logs.JsonLines().format(record(exception=True))

    event = json.loads(copy_context().run(line))
    assert event["request_id"] == "0af7651916cd43dd8448eb211c80319c"
    assert event["exception"].startswith("Traceback")
    assert event["exception"].endswith("RuntimeError: why")


@pytest.mark.requirement("monitoring.logs")
def test_what_ends_a_thread_is_in_the_log(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def work() -> None:
        raise RuntimeError("why")

    monkeypatch.setattr(threading, "excepthook", logs.log_escaped)
    begin_thread("of the test", work).join()
    [said] = caplog.records
    assert said.getMessage() == "the thread of the test has ended"
    assert said.exc_info is not None
    assert str(said.exc_info[1]) == "why"


@pytest.mark.requirement("monitoring.logs")
def test_a_thread_logs_under_the_id_of_the_request_that_began_it() -> None:
    named: list[str] = []

    def request() -> None:
        request_id.begin([(b"traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")])
        begin_thread("of the test", lambda: named.append(request_id.current())).join()

    copy_context().run(request)
    assert named == ["0af7651916cd43dd8448eb211c80319c"]
