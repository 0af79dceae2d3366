"""Reads one hostile file and says what is wrong with how that went; nothing in the usual case."""

import io
import time
from collections.abc import Callable, Iterator

from analytics.records import Record
from connectors.connector import SourceError
from connectors.limits import READ_SECONDS_BASE, READ_WAIT_FACTOR
from connectors.parser_process.client import interruption

Read = Callable[[io.BytesIO], Iterator[Record]]
REASON_CHARACTERS_MAX = 300
CRASHES = (str(interruption()), "the file cannot be read.")


def fault(read: Read, content: bytes) -> str | None:
    """Why this reading is no refusal in one sentence and no whole statement."""
    began = time.monotonic()
    try:
        for _ in read(io.BytesIO(content)):
            pass
    except SourceError as refusal:
        reason = str(refusal)
        if reason in CRASHES:
            return f"a defect of ours: {reason} {refusal.detail}"
        if "\n" in reason or not reason.endswith((".", "!")) or len(reason) > REASON_CHARACTERS_MAX:
            return f"not one sentence: {reason}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    seconds = time.monotonic() - began
    return f"{seconds:.0f} s" if seconds > READ_SECONDS_BASE * READ_WAIT_FACTOR else None
