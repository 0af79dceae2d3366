"""The bookings of a batch: their wordings in a temporary file, and in memory only the keys by which they are
compared."""

import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import TypeVar

import msgspec
import polars as pl

from analytics.frames import columns
from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from storage.importing.matching.booking_keys import fingerprint, own_id, plain

R = TypeVar("R", AccountRecord, StatementRecord, TransactionRecord)

PARTING = "\x1f"  # between references; no text of a source has one (connectors.text.clean)
NUL = rb"\u0000"  # as JSON has it; PostgreSQL keeps none
CHUNK_ROWS = 5_000  # held, derived and written in one go: bounds memory, changes no result
KEYS = {"place": pl.UInt32()} | columns(
    "booking_date, amount, amount_text, currency, is_booked, provider_id, own_id, references, fingerprint, digest"
)
"""What bookings are compared by: one row each, `place` is the booking's in the batch, `references` stand one after the
other (a column of lists takes Polars ten times as long to make), `digest` is that of the wording."""

NO_KEYS = pl.DataFrame(schema=KEYS)

wording_of = msgspec.json.Encoder().encode
record_of = msgspec.json.Decoder(TransactionRecord).decode


class Spool:
    """Collects the bookings of a batch one by one, in their order; `keys`, `pieces` and `records` return them by their
    place, from 0. Most lie in a temporary file, which goes with the object."""

    def __init__(self) -> None:
        self._wordings: list[bytes] = []
        self._keys: list[tuple[object, ...]] = []
        self._frames: list[pl.DataFrame] = []
        self._latest = NO_KEYS  # frame of `_keys`, as far as it has been asked for
        self.with_words: list[int] = []  # places of bookings on which their owner has words
        self._ends = [0]  # of the chunks in the file
        self._descriptor: int | None = None

    def __len__(self) -> int:
        return len(self._frames) * CHUNK_ROWS + len(self._wordings)

    def add(self, record: TransactionRecord) -> None:
        """Add one booking, without U+0000 in its texts."""
        wording = wording_of(record)
        if NUL in wording:
            record = without_nul(record)
            wording = wording_of(record)
        if record.words is not None:
            self.with_words.append(len(self))
        text = plain(record.amount)
        self._keys.append(
            (
                len(self),
                record.booking_date,
                record.amount,
                text,
                record.currency,
                record.status == "booked",
                record.provider_id,
                own_id(record),
                PARTING.join(record.references),
                fingerprint(record, text),
                blake2b(wording, digest_size=16).hexdigest(),
            )
        )
        self._wordings.append(wording)
        if len(self._wordings) == CHUNK_ROWS:
            self._put_away()

    def keys(self, ranges: Iterable[range]) -> pl.DataFrame:
        """The bookings at these places, in their order, as KEYS."""
        if self._latest.height < len(self._keys):
            self._latest = _frame(self._keys)
        whole = pl.concat([*self._frames, self._latest])
        return pl.concat([whole.clear(), *(whole.slice(each.start, len(each)) for each in ranges)])

    def pieces(self, places: Sequence[int]) -> Iterator[tuple[list[int], list[bytes]]]:
        """The places (given in ascending order) and wordings (the JSON of each) of these bookings, a chunk at a
        time."""
        for chunk, group in groupby(places, key=lambda place: place // CHUNK_ROWS):
            wanted = list(group)
            wordings = self._chunk(chunk)
            yield wanted, [wordings[place % CHUNK_ROWS] for place in wanted]

    def records(self, places: Sequence[int]) -> list[TransactionRecord]:
        """The bookings at these `places`, in their order."""
        found: dict[int, TransactionRecord] = {}
        for wanted, wordings in self.pieces(sorted(places)):
            found.update(zip(wanted, map(record_of, wordings), strict=True))
        return [found[place] for place in places]

    def _chunk(self, number: int) -> list[bytes]:
        if number == len(self._frames):
            return self._wordings
        assert self._descriptor is not None, "a chunk was put away"
        begin, end = self._ends[number : number + 2]
        return os.pread(self._descriptor, end - begin, begin).split(b"\n")

    def _put_away(self) -> None:
        if self._descriptor is None:
            with tempfile.TemporaryFile(prefix="bankdata-") as file:
                self._descriptor = os.dup(file.fileno())
            weakref.finalize(self, os.close, self._descriptor)
        content = memoryview(b"\n".join(self._wordings))  # JSON keeps its line breaks escaped
        self._ends.append(self._ends[-1] + len(content))
        while content:
            content = content[os.write(self._descriptor, content) :]
        self._frames.append(_frame(self._keys))
        self._wordings, self._keys, self._latest = [], [], NO_KEYS


def days_at_once(rows: pl.DataFrame, rows_max: int) -> list[pl.DataFrame]:
    """The days of these rows in order, with the number of rows (`booking_date`, `n`), neighbouring ones together in
    frames for about `rows_max` rows each."""
    days = rows.group_by("booking_date").agg(n=pl.len()).sort("booking_date")
    if rows.height <= rows_max:
        return [days] if rows.height else []
    return days.with_columns(share=(pl.col("n").cum_sum() - pl.col("n")) // rows_max).partition_by("share")


def without_nul(record: R) -> R:
    """The record without U+0000 in its texts: nobody means it, and PostgreSQL refuses it."""
    texts = {name: getattr(record, name) for name in record.__struct_fields__}
    dropped: dict[str, object] = {name: text.replace("\0", "") for name, text in texts.items() if isinstance(text, str)}
    if isinstance(record, TransactionRecord):
        dropped["references"] = tuple(reference.replace("\0", "") for reference in record.references)
    return msgspec.structs.replace(record, **dropped)


def _frame(keys: Sequence[tuple[object, ...]]) -> pl.DataFrame:
    columns = zip(*keys, strict=True) if keys else [()] * len(KEYS)
    return pl.DataFrame(
        [pl.Series(name, values, dtype=dtype) for (name, dtype), values in zip(KEYS.items(), columns, strict=True)]
    )
