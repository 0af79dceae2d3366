"""Many mutants in one process are read as each would be apart, and the file that stops the process is blamed."""

import sys
from io import BytesIO
from pathlib import Path

import pytest

from connectors import formats
from connectors.connector import MalformedFile
from tests.attack.files.batch import faults, read
from tests.attack.files.seeds import seeds

# Reads from the number that it is given: ends of itself over 3, finds fault with 5
READER = """#!/bin/sh
number=$3
while [ $number -lt $(($3 + $4)) ]; do
    echo $number
    if [ $number = 3 ]; then kill -PROF $$; fi
    if [ $number = 5 ]; then echo camt, 7 bytes: ValueError; fi
    number=$((number + 1))
done
"""


@pytest.mark.requirement("readers.apart")
@pytest.mark.parametrize("name", sorted(seeds()))
def test_a_batch_reads_what_a_process_of_its_own_reads(name: str) -> None:
    assert list(read(BytesIO(seeds()[name]))) == list(formats.read_records(BytesIO(seeds()[name])))


@pytest.mark.requirement("readers.apart")
def test_a_batch_refuses_what_is_no_statement() -> None:
    with pytest.raises(MalformedFile):
        list(read(BytesIO(b"PAR1 and nothing more")))


@pytest.mark.requirement("readers.apart")
def test_whatever_ends_the_process_is_the_fault_of_the_file_that_it_was_reading(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reader = tmp_path / "reader"
    reader.write_text(READER)
    reader.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(reader))
    assert list(faults(2, 5)) == [
        (2, ""),
        (3, "its reader ended with -27"),
        (4, ""),
        (5, "camt, 7 bytes: ValueError"),
        (6, ""),
    ]


@pytest.mark.requirement("readers.apart")
@pytest.mark.long
def test_two_hundred_mutants_are_read_or_refused() -> None:
    assert list(faults(0, 200)) == [(number, "") for number in range(200)]
