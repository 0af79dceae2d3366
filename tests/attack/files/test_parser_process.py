"""Statement files are parsed in a process of its own: what happens to it happens to one file and to nothing else."""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from io import BytesIO, RawIOBase
from pathlib import Path

import psutil
import pytest

from analytics.records import AccountRecord, Record, StatementRecord, TransactionRecord
from connectors import formats
from connectors.bank_csv.layouts import CsvLayout
from connectors.bank_csv.profile import parse_profile
from connectors.bank_csv.reader import Explanation
from connectors.connector import LimitExceeded, MalformedFile, ProviderUnavailable, SourceError, UnsupportedFile
from connectors.limits import FILE_BYTES_MAX, READ_MEMORY_BYTES_MAX, READ_OPEN_FILES_MAX, read_seconds_max
from connectors.parser_process import client, messages
from connectors.parser_process.answering import answer
from connectors.parser_process.messages import (
    FormatName,
    Packer,
    ParseRequest,
    answers,
    decoded_request,
    encoded_request,
)
from connectors.statements import explain, format_name, read_records
from tests.attack.files.seeds import MT940, RECORDS, seeds

BOOKING = ":61:2601300130D12,34NTRFNONREF\r\n:86:166?00TEXT?20SVWZ+Miete?32Name\r\n"
LARGE = MT940.partition(":61:")[0] + BOOKING * 200_000  # some seconds of work
STOPPED = "the file cannot be read: its reader was stopped."

pytestmark = pytest.mark.requirement("readers.apart")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "large.sta"
    path.write_text(LARGE + ":62F:C260131EUR86,66\r\n-\r\n", encoding="cp1252", newline="")
    return path


def waiting() -> psutil.Process:
    """The process that waits, which has been asked before."""
    assert client._process._process is not None
    return psutil.Process(client._process._process.pid)


def begun(path: Path, check: Callable[[], None] = lambda: None) -> tuple[Iterator[Record], psutil.Process]:
    """A file of which some records have come, and the process that is still reading it."""
    format_name(BytesIO(MT940.encode()))
    psutil.wait_procs(waiting().children(), timeout=60)
    records = read_records(path, check=check)
    next(records)
    _keeper, child = waiting().children(recursive=True)
    return records, child


@pytest.mark.parametrize("name", sorted(seeds()))
def test_what_is_read_apart_is_what_the_readers_say(name: str) -> None:
    content = seeds()[name]
    assert list(read_records(BytesIO(content))) == list(formats.read_records(BytesIO(content)))
    assert format_name(BytesIO(content)) == formats.format_name(BytesIO(content))


def test_refusals_keep_their_class_and_their_words(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFile, match="the file is empty"):
        list(read_records(BytesIO(b"")))
    with pytest.raises(MalformedFile, match="line 5: a :61: that cannot be read"):
        list(read_records(BytesIO(MT940.replace(":61:260130", ":61:2x0130").encode())))
    with pytest.raises(LimitExceeded, match="Line 1: more than 500 columns"):
        list(read_records(BytesIO(b"Date;Amount" + b";" * 500 + b"\n2026-01-01;1,00;x\n")))
    large = tmp_path / "large"
    with large.open("wb") as stream:
        stream.truncate(FILE_BYTES_MAX + 1)
    for entrance in (lambda: list(read_records(large)), lambda: format_name(large)):
        with pytest.raises(LimitExceeded, match="larger than allowed"):
            entrance()


def test_layouts_of_the_users_own_are_known_there() -> None:
    profile = parse_profile(
        '{"header": ["Tag", "Summe"], "columns": {"date": "Tag", "amount": "Summe", "purpose": "Was"}, '
        '"date": "DD.MM.YYYY", "bank": "Hausbank"}',
        name="own",
    )
    content = b"Tag;Summe;Was\n31.01.2026;1,00;x\n"
    account = next(read_records(BytesIO(content), [profile]))
    assert isinstance(account, AccountRecord)
    assert account.bank_name == "Hausbank"
    assert explain(BytesIO(content), [profile]).profile == "own"


@pytest.mark.parametrize(
    ("sent", "error", "sentence"),
    [
        (signal.SIGSEGV, MalformedFile, STOPPED),
        (signal.SIGXCPU, LimitExceeded, "the file takes longer to read than allowed."),
        (signal.SIGKILL, LimitExceeded, "the file takes longer to read than allowed."),
    ],
)
def test_a_reader_that_dies_refuses_its_file_and_no_other(
    sent: int, error: type[SourceError], sentence: str, large: Path
) -> None:
    records, child = begun(large)
    before = waiting().pid
    child.send_signal(sent)
    with pytest.raises(error) as refused:
        list(records)
    assert str(refused.value) == sentence
    assert len(list(read_records(BytesIO(MT940.encode())))) == 4
    assert waiting().pid == before, "the waiting process lives on"


def test_a_waiting_process_that_dies_is_replaced(large: Path) -> None:
    records, _child = begun(large)
    before = waiting()
    for each in (before, *before.children(recursive=True)):
        each.kill()
    with pytest.raises(MalformedFile, match="its reader was stopped"):
        list(records)
    assert format_name(BytesIO(MT940.encode())) == "mt940"
    assert waiting().pid != before.pid


def test_a_process_that_has_just_closed_its_end_is_replaced() -> None:
    format_name(BytesIO(MT940.encode()))
    before, control = waiting(), client._process._control
    assert control is not None
    control.shutdown(socket.SHUT_RDWR)  # as when it has waited long enough and ends
    assert format_name(BytesIO(MT940.encode())) == "mt940"
    assert waiting().pid != before.pid


def test_a_process_that_does_not_end_by_itself_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    format_name(BytesIO(MT940.encode()))
    stopped = waiting()
    stopped.suspend()
    monkeypatch.setattr("connectors.waiting_process.END_SECONDS", 0.05)
    client._process.end()
    assert not stopped.is_running()
    assert format_name(BytesIO(MT940.encode())) == "mt940"


def test_an_interpreter_that_is_gone_leaves_no_open_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    client._process.end()
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    open_files = psutil.Process().num_fds()
    with pytest.raises(FileNotFoundError):
        format_name(BytesIO(MT940.encode()))
    client._process.end()
    assert psutil.Process().num_fds() <= open_files


@pytest.mark.parametrize("has_ended", [False, True])
def test_without_a_process_the_source_is_unavailable(monkeypatch: pytest.MonkeyPatch, has_ended: bool) -> None:
    client._process.end()
    monkeypatch.setattr(client._process, "_begin", "raise SystemExit(1)")
    start = client._process._start

    def start_and_wait() -> None:
        start()
        assert client._process._process is not None
        client._process._process.wait()

    if has_ended:
        monkeypatch.setattr(client._process, "_start", start_and_wait)
    with pytest.raises(ProviderUnavailable) as refusal:
        list(read_records(BytesIO(MT940.encode())))
    assert str(refusal.value) == "The process that reads statement files cannot be started."
    client._process.end()


def test_a_file_has_limits_of_its_own(large: Path) -> None:
    records, child = begun(large)
    limits = Path(f"/proc/{child.pid}/limits").read_text()
    found = {line[:25].strip(): line[25:].split()[0] for line in limits.splitlines()}
    assert found["Max cpu time"] == str(read_seconds_max(large.stat().st_size))
    assert found["Max address space"] == str(READ_MEMORY_BYTES_MAX)
    assert found["Max open files"] == str(READ_OPEN_FILES_MAX)
    assert found["Max core file size"] == "0"
    environment = child.environ()
    assert set(environment) <= {"TMPDIR", "LD_LIBRARY_PATH", "LC_CTYPE"}, "no secrets of the server"
    descriptors = [str(entry.readlink()) for entry in Path(f"/proc/{child.pid}/fd").iterdir()]
    assert [kind for kind in descriptors if kind.startswith("socket:")] == [], "nor its sockets"
    records.close()  # type: ignore[attr-defined]  # a generator


def test_many_files_take_one_interpreter() -> None:
    format_name(BytesIO(MT940.encode()))
    before = waiting().pid
    for _ in range(20):
        list(read_records(BytesIO(MT940.encode())))
    assert waiting().pid == before


def test_a_reading_that_is_given_up_ends(large: Path) -> None:
    records, child = begun(large)
    records.close()  # type: ignore[attr-defined]  # a generator
    assert psutil.wait_procs([child], timeout=60)[1] == []


def test_a_reading_of_which_nothing_comes_ends_once_it_is_given_up(large: Path) -> None:
    """A file can keep its reader busy without a piece, and its reader then never notices that nobody listens."""

    class Unwanted(Exception):
        pass

    def check() -> None:
        if is_unwanted:
            raise Unwanted

    is_unwanted = False
    records, child = begun(large, check)
    child.suspend()  # nothing is said from now on
    is_unwanted = True
    with pytest.raises(Unwanted):
        list(records)
    assert psutil.wait_procs([child], timeout=60)[1] == []


def test_a_short_file_passes_a_long_one(large: Path) -> None:
    records, child = begun(large)
    child.suspend()
    assert format_name(BytesIO(MT940.encode())) == "mt940"
    assert len(list(read_records(BytesIO(MT940.encode())))) == 4
    child.resume()
    records.close()  # type: ignore[attr-defined]  # a generator


def test_files_that_come_together_are_read_apart() -> None:
    found: dict[str, int] = {}

    def read(name: str) -> None:
        found[name] = len(list(read_records(BytesIO(seeds()[name]))))

    names = ["mt940", "camt", "ofx", "csv-words"]
    threads = [threading.Thread(target=read, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {name: len(list(formats.read_records(BytesIO(seeds()[name])))) for name in names}


class Failing(RawIOBase):
    """A file whose reading fails as our own code might."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def seek(self, offset: int, *_whence: int) -> int:
        return offset

    def read(self, *_size: int) -> bytes:
        raise self._error


def told(request: ParseRequest, stream: BytesIO | Failing) -> list[messages.ParserAnswer]:
    """What the process would answer, in this one."""
    collected: list[bytes] = []
    packer = Packer(collected.append)
    answer(decoded_request(encoded_request(request)), stream, packer)  # type: ignore[arg-type]  # reads and seeks
    packer.flush()
    return [each for piece in collected for each in answers(piece)]


def test_whatever_goes_wrong_inside_is_a_refusal() -> None:
    (out_of_memory,) = told(ParseRequest(wanted="records"), Failing(MemoryError()))
    assert isinstance(out_of_memory, messages.FileRefusal)
    assert (out_of_memory.kind, out_of_memory.reason) == (
        "LimitExceeded",
        "the file takes more memory to read than allowed.",
    )
    (defect,) = told(ParseRequest(wanted="records"), Failing(ZeroDivisionError("secret")))
    assert isinstance(defect, messages.FileRefusal)
    assert (defect.kind, defect.reason, defect.detail) == (
        "MalformedFile",
        "the file cannot be read.",
        "ZeroDivisionError",
    )
    for error in (UnsupportedFile("a."), LimitExceeded("b."), MalformedFile("c.", detail="d")):
        (refusal,) = told(ParseRequest(wanted="records"), Failing(error))
        assert isinstance(refusal, messages.FileRefusal)
        assert (type(refusal.error()), str(refusal.error()), refusal.error().detail) == (
            type(error),
            str(error),
            error.detail,
        )


def test_each_wish_has_its_answer() -> None:
    content = seeds()["csv-words"]
    assert told(ParseRequest(wanted="format"), BytesIO(content)) == [FormatName(name="csv")]
    (explanation,) = told(ParseRequest(wanted="explanation"), BytesIO(content))
    assert isinstance(explanation, Explanation)
    assert explanation.header_row == 4
    layouts: list[CsvLayout] = []
    records = list(formats.read_records(BytesIO(content), on_layout=layouts.append))
    assert len(layouts) == 1
    assert told(ParseRequest(wanted="records"), BytesIO(content)) == [*records, *layouts]


def test_records_come_in_bounded_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "PIECE_BYTES", 1000)
    collected: list[bytes] = []
    packer = Packer(collected.append)
    for record in RECORDS * 20:
        packer.add(record)
    packer.flush()
    packer.flush()
    assert len(collected) > 10
    assert max(map(len, collected)) < 2000
    assert [each for piece in collected for each in answers(piece)] == RECORDS * 20


@pytest.mark.parametrize(
    "piece",
    [
        b"x\x00\x00\x00\x01\x80",  # an unknown kind
        b"t\x00\x00\x00\x01\x80",  # a booking without an amount
        b"t\x00\x00",  # cut off
        b"a\x00\x00\x00\x05\x80\x04\x95c\x00",  # pickled
        b"f\x00\x00\x00\x07\x81\xa4name\x01",  # a number where a text belongs
    ],
)
def test_what_no_reader_says_is_refused(piece: bytes) -> None:
    with pytest.raises(MalformedFile, match="the file cannot be read"):
        list(answers(piece))


def saying(*said: messages.ParserAnswer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectors.statements.ask_process", lambda *_: iter(said))


def test_an_answer_to_another_question_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    saying(FormatName(name="csv"), monkeypatch=monkeypatch)
    with pytest.raises(MalformedFile, match=STOPPED):
        list(read_records(BytesIO()))
    with pytest.raises(MalformedFile, match=STOPPED):
        explain(BytesIO())
    saying(StatementRecord(), monkeypatch=monkeypatch)
    with pytest.raises(MalformedFile, match=STOPPED):
        format_name(BytesIO())


def test_a_piece_that_claims_too_much_is_refused(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.write_bytes(b"\xff\xff\xff\xff")
    descriptor = os.open(spool, os.O_RDONLY)
    with pytest.raises(MalformedFile, match=STOPPED):
        list(client._answers(b".", lambda: b"!", descriptor, 0))
    os.close(descriptor)


def test_amounts_and_days_survive_the_way() -> None:
    found = told(ParseRequest(wanted="records"), BytesIO(seeds()["camt"]))
    row = next(each for each in found if isinstance(each, TransactionRecord))
    assert (str(row.amount), row.booking_date.isoformat()) == ("-12.34", "2026-01-02")


def test_the_process_that_waits_has_one_thread_and_little_memory() -> None:
    """Threads do not survive a fork, and their locks do: neither Polars nor DuckDB is loaded before a file needs it."""
    format_name(BytesIO(MT940.encode()))
    assert waiting().num_threads() == 1
    assert waiting().memory_info().rss < 100 * 1024 * 1024
