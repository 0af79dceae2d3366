"""Tables that another format holds, such as the sheets of a workbook, read as CSV files: by the same layouts, with the
same guesses said and the same doubts refused."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast

from analytics.records import Record
from connectors.bank_csv.layouts import OnLayout
from connectors.bank_csv.profile import Profile
from connectors.bank_csv.reader import read

_IN_MEMORY_BYTES = 1 << 20


def read_table(
    rows: Iterable[Sequence[str]],
    profiles: Sequence[Profile] | None,
    on_layout: OnLayout,
    *,
    has_banks_columns: bool = True,
) -> Iterator[Record]:
    """The records of one table, whose cells are texts; errors name its rows as lines. Where its columns are no bank's,
    no built-in profile is tried."""
    with SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES, prefix="bankdata-") as file:
        text = io.TextIOWrapper(cast(BinaryIO, file), "utf-8", newline="", write_through=True)
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([" ".join(cell.split()) for cell in row] for row in rows)
        text.detach()
        file.seek(0)
        yield from read(cast(BinaryIO, file), profiles, on_layout, is_any_bank=has_banks_columns)
