"""`bankdata import --explain`: says in words what was recognised in a file, and why."""

from collections.abc import Generator, Iterator, Sequence
from datetime import date
from pathlib import Path

from analytics.records import Batch, InvalidRecord
from connectors.bank_csv.layouts import CsvLayout, check_layouts, guesses_in_words
from connectors.bank_csv.profile import Profile
from connectors.bank_csv.reader import Explanation
from connectors.connector import SourceError, as_sentence
from connectors.statements import explain, format_name, read_records
from handlers.commands.counts import quantity
from handlers.commands.imports import statement_line
from storage.importing.batches import read_batch

FORMAT_NAMES = {
    "camt": "camt (ISO 20022)",
    "mt940": "MT940",
    "ofx": "OFX",
    "csv": "CSV",
    "excel": "Excel or OpenDocument",
    "qif": "QIF",
    "zip": "ZIP container",
    "jsonl": "JSON lines of bankdata export",
    "parquet": "Parquet of bankdata export",
    "beancount": "Beancount ledger of bankdata export",
}
LEFT_OUT = "(left out)"
DELIMITERS = {"\t": "tab"}


def explain_file(file: str, path: Path, profiles: Sequence[Profile], *, today: date) -> Generator[str, None, bool]:
    """Lines on the format of the file that its user calls `file`, for CSV the layout and the use of each column, then
    the statements, or why it is refused. The generator returns whether the file could be imported."""
    layouts: list[CsvLayout] = []
    try:
        name = format_name(path)
        yield f"{file}: {FORMAT_NAMES.get(name or '', 'not a known format')}"
        if name == "csv":
            yield from _layout(explain(path, profiles))
        read = read_batch(Batch(id=file, records=read_records(path, profiles, layouts.append)), today=today)
        check_layouts(layouts)
    except (SourceError, InvalidRecord) as error:
        yield f"  refused: {as_sentence(error)}"
        yield from _as_profiles(layouts)
        return False
    except OSError as error:
        yield f"{file}: refused: The file cannot be read: {error.strerror or error}."
        return False
    yield f"  {quantity(len(read.statements), 'statement')}:"
    for statement in read.statements:
        yield "    " + statement_line(statement)
    for each in guesses_in_words(layouts):
        yield f"  {each}"
    yield from _as_profiles(layouts)
    return True


def _as_profiles(layouts: Sequence[CsvLayout]) -> Iterator[str]:
    """A line of text for each guessed layout, with the profile that the person can correct and add."""
    yield from (f"  profile    {each.profile}" for each in layouts if each.profile)


def _layout(found: Explanation) -> Iterator[str]:
    if found.profile is None:
        yield "  no layout was recognised"
        return
    yield f"  layout     {found.profile}" + (f" ({found.bank})" if found.bank else "")
    yield f"  because    {found.why}"
    if found.encoding:
        header = f"header in row {found.header_row}" if found.header_row else "no header"
        dates = f", dates {' or '.join(found.dates)}" if found.dates else ""
        delimiter = DELIMITERS.get(found.delimiter, found.delimiter)
        yield f"  written    {found.encoding}, separated by {delimiter}, {header}, decimal mark {found.decimal}{dates}"
    width = max((len(column) for column, _ in found.columns), default=0)
    for number, (column, field) in enumerate(found.columns):
        yield f"  {'columns' if not number else '':<9}  {column:<{width}}  ->  {field or LEFT_OUT}"
