"""The one entrance for statement files: they are parsed in a process of its own (`connectors.parser_process`)."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from connectors.bank_csv.layouts import CsvLayout, OnLayout
from connectors.bank_csv.profile import Profile
from connectors.bank_csv.reader import Explanation
from connectors.parser_process.client import ask_process, interrupted
from connectors.parser_process.messages import FormatName, ParseRequest
from storage.importing.records import AccountRecord, Record, StatementRecord, TransactionRecord


def read_records(
    source: Path | BinaryIO,
    profiles: Sequence[Profile] | None = None,
    on_layout: OnLayout = lambda _: None,
    check: Callable[[], None] = lambda: None,
) -> Iterator[Record]:
    """All records of a file in one stream; the files of a ZIP container one after the other, told by their part.

    `profiles` are the user's own; a layout that was guessed is told to `on_layout`. Raises SourceError, possibly after
    some records: what is wrong with the file, or that reading it took more time or memory than allowed. What `check`
    raises meanwhile ends the reading.
    """
    for answer in ask_process(source, ParseRequest(wanted="records", profiles=tuple(profiles or ())), check):
        if isinstance(answer, CsvLayout):
            on_layout(answer)
            continue
        if not isinstance(answer, AccountRecord | TransactionRecord | StatementRecord):
            raise interrupted()
        yield answer


def format_name(source: Path | BinaryIO, check: Callable[[], None] = lambda: None) -> str | None:
    """What a file is called in reports: the name of its format or zip; None when it is neither."""
    answer = next(ask_process(source, ParseRequest(wanted="format"), check), None)
    if not isinstance(answer, FormatName):
        raise interrupted()
    return answer.name


def explain(source: Path | BinaryIO, profiles: Sequence[Profile] | None = None) -> Explanation:
    """How a CSV file would be read, or why it would be refused."""
    answer = next(ask_process(source, ParseRequest(wanted="explanation", profiles=tuple(profiles or ()))), None)
    if not isinstance(answer, Explanation):
        raise interrupted()
    return answer
