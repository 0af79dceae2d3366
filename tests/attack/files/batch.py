"""Many mutants in one process, under the limits of the one that parses, and under a time limit for each file.

A fork for every file, which loads DuckDB again for every Parquet, is most of what reading small files apart costs:
here a file costs what its reader needs. Whatever ends the process is the fault of the file whose number it said last.
"""

import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import psutil

from analytics.records import AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.bank_csv.layouts import CsvLayout
from connectors.limits import READ_MEMORY_BYTES_MAX, READ_OPEN_FILES_MAX, READ_WAIT_FACTOR, read_seconds_max
from connectors.parser_process.answering import answer
from connectors.parser_process.messages import FileRefusal, Packer, ParseRequest, answers
from tests.attack.files.mutants import mutant
from tests.attack.files.reading import fault
from tests.attack.files.seeds import seeds

ROOT = Path(__file__).resolve().parents[3]
FILES = 5_000  # for each process


def faults(first: int, count: int, samples: Path | None = None) -> Iterator[tuple[int, str]]:
    """The numbers of the mutants in their order, each with what is wrong with it, or with nothing."""
    number, after = first - 1, first + count
    while number + 1 < after:
        begin = number + 1
        command = [sys.executable, "-m", "tests.attack.files.batch", str(begin), str(min(FILES, after - begin))]
        with subprocess.Popen(
            [*command, *([str(samples)] if samples else [])], cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None, "a pipe"
            said = ""
            for line in child.stdout:
                if not line.strip().isdecimal():
                    said = line.strip()
                    continue
                if number >= begin:
                    yield number, said
                number, said = int(line), ""
        if number < begin:
            raise RuntimeError("The process that reads mutants did not start.")
        yield number, said or (f"its reader ended with {child.returncode}" if child.returncode else "")


def read(stream: BytesIO) -> Iterator[Record]:
    """As the process that parses answers, and as the one that asked it takes the answer."""
    pieces: list[bytes] = []
    packer = Packer(pieces.append)
    answer(ParseRequest(wanted="records"), stream, packer)
    packer.flush()
    for piece in pieces:
        for each in answers(piece):
            if isinstance(each, FileRefusal):
                raise each.error()
            if isinstance(each, CsvLayout):
                continue
            assert isinstance(each, AccountRecord | TransactionRecord | StatementRecord)
            yield each


def main(first: int, count: int, samples: Path | None) -> None:
    """Say the number of each mutant before it is read, and afterwards what was wrong."""
    known = seeds(samples)
    memory = psutil.Process().memory_info().vms + READ_MEMORY_BYTES_MAX  # besides what made the seeds
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_NOFILE, (READ_OPEN_FILES_MAX, READ_OPEN_FILES_MAX))
    for number in range(first, first + count):
        name, content = mutant(number, known)
        print(number, flush=True)
        seconds = read_seconds_max(len(content))
        signal.setitimer(signal.ITIMER_PROF, seconds)  # both end the process
        signal.setitimer(signal.ITIMER_REAL, seconds * READ_WAIT_FACTOR)
        if found := fault(read, content):
            print(f"{name}, {len(content)} bytes: {found}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]) if len(sys.argv) > 3 else None)
