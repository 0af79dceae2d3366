"""What the log looks like: one line per event on standard error, as text or as JSON."""

import logging
import threading
from datetime import UTC, datetime
from typing import Any

import orjson

from handlers.http import request_id
from handlers.settings import LogFormat

log = logging.getLogger("bankdata")

SILENCED = {name: {"level": "ERROR"} for name in ("httpx", "httpcore", "fints")}
"""Loggers of others that write whole addresses, and what banks say, where nobody may read them."""


class JsonLines(logging.Formatter):
    """An event as a JSON object: time (UTC), level, logger, message, and request_id and exception where there are."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
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
    """Log what ended a thread: by itself Python would write it past the log."""
    log.error("the thread %s has ended", escaped.thread and escaped.thread.name, exc_info=escaped.exc_value)


def configuration(level: str, log_format: LogFormat) -> dict[str, Any]:
    """The configuration of `logging` for a server: our own events from `level` on, others' warnings."""
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
