"""The parsing process: it waits, and a child process reads each file.

The waiting process has loaded everything and never looks into a file; a fork of it costs milliseconds, begins clean,
and takes everything that a hostile file did along when it ends. Simultaneous requests are read at the same time; their
number is up to the callers. A process between the two supervises each child, and ends it once nobody waits for it any
more.
"""

import os
import resource
import select
import signal
import tempfile
from pathlib import Path

from connectors.bank_csv.profile import built_in_profiles
from connectors.limits import (
    READ_MEMORY_BYTES_MAX,
    READ_OPEN_FILES_MAX,
    READ_RESULT_BYTES_MAX,
    READ_WAIT_FACTOR,
    read_seconds_max,
)
from connectors.parser_process.answering import answer
from connectors.parser_process.messages import (
    CRASHED,
    END,
    LENGTH_BYTES,
    PIECE,
    TOO_LONG,
    Packer,
    decoded_request,
)
from connectors.text import currency_code, parse_iban
from connectors.waiting_process import fork_for_requests


def main() -> None:
    """Read the file of each request in a fork, until nobody asks any more (`connectors.waiting_process`)."""
    built_in_profiles()
    parse_iban("DE89370400440532013000")  # loads the data about countries
    currency_code("EUR")  # and those about currencies
    fork_for_requests(_attend)


def _attend(source: int, spool: int, channel: int) -> None:
    with tempfile.TemporaryDirectory(prefix="bankdata-") as folder:
        _supervise(source, spool, channel, folder=Path(folder))


def _supervise(source: int, spool: int, channel: int, *, folder: Path) -> None:
    seconds = read_seconds_max(os.fstat(source).st_size)
    alive, its_end = os.pipe()  # closed by the end of the child
    child = os.fork()
    if not child:
        try:
            os.close(alive)
            tempfile.tempdir = str(folder)
            _limit(seconds)
            _read(source, spool, channel)
        finally:
            os._exit(0)
    os.close(its_end)
    poll = select.poll()
    poll.register(alive, 0)
    poll.register(channel, 0)  # closed when nobody waits any more
    poll.poll(seconds * READ_WAIT_FACTOR * 1000)
    if verdict := _verdict(child):
        try:
            os.write(channel, verdict)
        except BrokenPipeError:
            return  # nobody waits any more


def _limit(seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (READ_MEMORY_BYTES_MAX, READ_MEMORY_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_NOFILE, (READ_OPEN_FILES_MAX, READ_OPEN_FILES_MAX))
    resource.setrlimit(resource.RLIMIT_FSIZE, (READ_RESULT_BYTES_MAX, READ_RESULT_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _read(source: int, spool: int, channel: int) -> None:
    place = os.fstat(spool).st_size
    request = decoded_request(os.pread(spool, place, 0))

    def hand_over(piece: bytes) -> None:
        os.lseek(spool, 0, os.SEEK_END)
        _write_all(spool, len(piece).to_bytes(LENGTH_BYTES) + piece)
        os.write(channel, PIECE)

    packer = Packer(hand_over)
    with os.fdopen(source, "rb", closefd=False) as stream:
        stream.seek(0)
        answer(request, stream, packer)
    packer.flush()
    os.write(channel, END)


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def _verdict(child: int) -> bytes:
    """End the child if it still runs, and return the message about its end: TOO_LONG if it was still running or had
    used up its processor time, CRASHED for any other signal, empty for a normal end."""
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        return b""
    return TOO_LONG if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else CRASHED
