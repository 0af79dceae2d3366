"""The client of the parsing process: it passes an open file to the process and reads the answers in bounded pieces."""

import io
import os
import select
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from connectors.connector import LimitExceeded, MalformedFile, ProviderUnavailable
from connectors.limits import FILE_BYTES_MAX, PIECE_BYTES_MAX
from connectors.parser_process.messages import (
    CRASHED,
    END,
    LENGTH_BYTES,
    TOO_LONG,
    FileRefusal,
    ParserAnswer,
    ParseRequest,
    answers,
    encoded_request,
)
from connectors.waiting_process import WaitingProcess

CHECK_MILLISECONDS = 250  # between two checks whether the caller still waits
_ATTEMPTS = 2  # the waiting process may end at the moment of a request


def ask_process(
    source: Path | BinaryIO, request: ParseRequest, check: Callable[[], None] = lambda: None
) -> Iterator[ParserAnswer]:
    """The answers of the parsing process about a file, lazily.

    Raises the refusal of the file, MalformedFile when it could not be read to its end, LimitExceeded when it is too
    large or takes too long, and ProviderUnavailable when the process cannot be started. `check` is called at least four
    times a second while waiting; an exception from it ends the reading.
    """
    with ExitStack() as stack:
        stream = stack.enter_context(source.open("rb")) if isinstance(source, Path) else source
        if _is_too_large(stream):
            raise LimitExceeded("the file is larger than allowed.")
        descriptor = _descriptor(stream, stack)
        spool = stack.enter_context(TemporaryFile(prefix="bankdata-", buffering=0))
        written = encoded_request(request)
        spool.write(written)
        for _ in range(_ATTEMPTS):
            channel = stack.enter_context(os.fdopen(_send_request(descriptor, spool.fileno()), "rb", buffering=0))
            if first := _next_message(channel, check):
                yield from _answers(first, partial(_next_message, channel, check), spool.fileno(), len(written))
                return
        raise ProviderUnavailable("The process that reads statement files cannot be started.")


def _next_message(channel: io.RawIOBase | io.FileIO, check: Callable[[], None]) -> bytes:
    """The next message on the channel, a single byte (see `messages`); empty once its other end is closed. `check` is
    called before and during the wait, and may end it by an exception."""
    check()
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    while not poll.poll(CHECK_MILLISECONDS):
        check()
    return channel.read(1) or b""


def _answers(said: bytes, following: Callable[[], bytes], spool: int, place: int) -> Iterator[ParserAnswer]:
    while said:
        if said == END:
            return
        if said == TOO_LONG:
            raise LimitExceeded("the file takes longer to read than allowed.")
        if said == CRASHED:
            break
        size = int.from_bytes(os.pread(spool, LENGTH_BYTES, place))
        if size > PIECE_BYTES_MAX:
            break
        for answer in answers(os.pread(spool, size, place + LENGTH_BYTES)):
            if isinstance(answer, FileRefusal):
                raise answer.error()
            yield answer
        place += LENGTH_BYTES + size
        said = following()
    raise interruption()


def interruption() -> MalformedFile:
    """The error for a parsing process that crashed over a file or broke the protocol."""
    return MalformedFile("the file cannot be read: its reader was stopped.")


def _is_too_large(stream: BinaryIO) -> bool:
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    return size > FILE_BYTES_MAX


def _descriptor(stream: BinaryIO, stack: ExitStack) -> int:
    """The file descriptor of the stream; a stream without one is copied into a temporary file."""
    try:
        return stream.fileno()
    except (OSError, AttributeError):
        copy = TemporaryFile(prefix="bankdata-")  # noqa: SIM115 - closed with the stack
        stack.enter_context(copy)
        shutil.copyfileobj(stream, copy)
        copy.flush()
        return copy.fileno()


_process = WaitingProcess("connectors.parser_process.process")


def _send_request(source: int, spool: int) -> int:
    """Pass the descriptors of a file and of a spool, in which the request is written, to the process. Return the
    descriptor of a pipe on which it says when it has added an answer to the spool."""
    listening, telling = os.pipe()
    try:
        _process.send((source, spool, telling))
    except OSError:
        os.close(listening)
        raise
    finally:
        os.close(telling)
    return listening
