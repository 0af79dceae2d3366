"""The format of the log: one line per event on standard error, as text or as JSON."""

import logging
import threading
from datetime import UTC, datetime
from typing import Any

import orjson

from handlers.settings import LogFormat
from handlers.web import request_id

log = logging.getLogger("bankdata")

SILENCED = {name: {"level": "ERROR"} for name in ("httpx", "httpcore", "fints")}
"""Loggers of libraries that would write whole URLs and answers of banks into the log, where they must not stand."""


class JsonLines(logging.Formatter):
    """Formats an event as a JSON object: time (UTC), level, logger, message, and request_id and exception if there are
    any."""

    def format(self, record: logging.LogRecord) -> str:
        """The log record as one line of JSON."""
        event: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if named := request_id.current():
            event["request_id"] = named
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(event).decode()


def log_escaped(escaped: threading.ExceptHookArgs) -> None:
    """Log the exception that ended a thread; Python's own hook would write it to standard error past the log."""
    log.error("the thread %s has ended", escaped.thread and escaped.thread.name, exc_info=escaped.exc_value)


def configuration(level: str, log_format: LogFormat) -> dict[str, Any]:
    """The `logging` configuration of a server: our own events from `level` on, and warnings of other libraries."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "text": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"},
            "json": {"()": JsonLines},
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": log_format}},
        "root": {"level": "WARNING", "handlers": ["stderr"]},
        "loggers": {"bankdata": {"level": level.upper()}, "uvicorn": {"level": "ERROR"}, **SILENCED},
    }
