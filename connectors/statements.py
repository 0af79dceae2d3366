"""The entrance for statement files, which are parsed in a separate process (`connectors.parser_process`)."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from analytics.records import AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.bank_csv.layouts import CsvLayout, OnLayout
from connectors.bank_csv.profile import Profile
from connectors.bank_csv.reader import Explanation
from connectors.own_formats.jsonl import WordsLine
from connectors.parser_process.client import ask_process, interruption
from connectors.parser_process.messages import FormatName, ParseRequest


def read_records(
    source: Path | BinaryIO,
    profiles: Sequence[Profile] | None = None,
    on_layout: OnLayout = lambda _: None,
    check: Callable[[], None] = lambda: None,
    on_words: Callable[[str], None] = lambda _: None,
) -> Iterator[Record]:
    """All records of a file in one stream; those of a ZIP container's files follow each other and differ by `part`.

    `profiles` are the user's own; a layout that is guessed or the user's own is passed to `on_layout`, a line of an
    export of words to `on_words`. Raises SourceError, possibly after some records: for an error of the file, or when
    reading takes more time or memory than allowed. An exception from `check`, which is called repeatedly, ends the
    reading.
    """
    for answer in ask_process(source, ParseRequest(wanted="records", profiles=tuple(profiles or ())), check):
        if isinstance(answer, CsvLayout):
            on_layout(answer)
            continue
        if isinstance(answer, WordsLine):
            on_words(answer.text)
            continue
        if not isinstance(answer, AccountRecord | TransactionRecord | StatementRecord):
            raise interruption()
        yield answer


def format_name(source: Path | BinaryIO, check: Callable[[], None] = lambda: None) -> str | None:
    """The name of a file's format for reports, or zip; None where it is neither."""
    answer = next(ask_process(source, ParseRequest(wanted="format"), check), None)
    if not isinstance(answer, FormatName):
        raise interruption()
    return answer.name


def explain(source: Path | BinaryIO, profiles: Sequence[Profile] | None = None) -> Explanation:
    """An explanation of how a CSV file would be read, or why it would be refused."""
    answer = next(ask_process(source, ParseRequest(wanted="explanation", profiles=tuple(profiles or ()))), None)
    if not isinstance(answer, Explanation):
        raise interruption()
    return answer
