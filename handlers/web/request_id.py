"""The id of a request, which the log names: the trace id in its W3C traceparent header, else one of our own."""

import random
import re
from collections.abc import Iterable
from contextvars import ContextVar

# "version-format = trace-id "-" parent-id "-" trace-flags" W3C Trace Context 3.2.2; a later version may add to it
_TRACEPARENT = re.compile(
    rb"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-[!-~]{0,256})?"
)
_id: ContextVar[int | None] = ContextVar("request_id", default=None)


def begin(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Set the id of a request that has arrived with these headers: its trace id, else a random number. It holds for the
    request's task and for the threads that work for it."""
    sent = [value for name, value in headers if name == b"traceparent"]
    named = _TRACEPARENT.fullmatch(sent[0]) if len(sent) == 1 else None
    _id.set(int(named[1], 16) if named else random.getrandbits(128))


def current() -> str:
    """The id of the request being answered, as 32 hexadecimal digits; empty outside of requests."""
    named = _id.get()
    return "" if named is None else f"{named:032x}"
