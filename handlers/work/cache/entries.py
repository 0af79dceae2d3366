"""The booked transactions of one user in the order of the list, with the JSON of each row that was shown once."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from datetime import date
from functools import cached_property
from typing import Any

import orjson
import polars as pl

from analytics.frames import BOOKINGS
from analytics.refunds import refund_ids
from analytics.searching.parts import NO_PARTS
from storage.accounts import StoredAccount
from storage.database import Row
from storage.transactions import DETAILS, KEPT, Selection, for_search

KEPT_FILTERS_MAX = 64  # combinations of category, accounts and words whose positions are remembered
KEPT_POSITIONS_MAX = 500_000  # of all of them
INDEX_BYTES = 100  # of one id in a dictionary
TEXT_BYTES = 16  # of the reference to each text; Polars counts only its letters
# The estimate is multiplied by this, for the reserve of buffers and the gaps between them: a process grew 1.8-fold
# with users of 1,000 bookings, 1.2-fold with one of 200,000
FRAME_FACTOR = 2.2
ROW_BYTES = 16  # of each booking: its day, and the place of its JSON
OBJECT_BYTES = 40  # of a bytes object, besides its content
COLUMNS = [name for name in KEPT if name != "search_text"]
_EPOCH = date(1970, 1, 1).toordinal()

Filter = tuple[str | None, str | None, tuple[str, ...] | None, tuple[str, ...]]
"""What rows are chosen by besides days: category, finer category, accounts, words that each must contain."""
Render = Callable[[Mapping[str, Any], Mapping[str, StoredAccount]], dict[str, Any]]
"""A row of the list, and the user's accounts by id, as the JSON object of the contract."""


Shown = Callable[[str | None], str | None]
"""The code of a finer category as somebody may know it."""


class Entries:
    """Booked transactions with the columns of `storage.transactions.KEPT`, latest booking date first, then by id
    descending, with or without the columns of DETAILS; `render` makes the JSON of a row. `parts` are those into which
    the user divided some of them: a category finds a booking by its parts, too. The frame passed in is changed, so the
    caller must not use it any more.

    The code chooses columns by `frame[[...]]`, because `select` and `drop` make a plan for each frame, which takes
    longer than all the rest.
    """

    def __init__(
        self,
        rows: pl.DataFrame,
        accounts: Mapping[str, StoredAccount],
        render: Render,
        parts: pl.DataFrame = NO_PARTS,
    ) -> None:
        self._searched = rows[[*KEPT]]
        self.rows = rows[[*COLUMNS]]
        self.bookings = rows[[*BOOKINGS]]
        # Newest first: negated, the days ascend, as bisect wants them
        self._days = array("i", (rows["booking_date"].to_physical() * -1).to_list())
        self._accounts = accounts
        self.render = render
        self._parts = parts
        self._json = [b""] * rows.height  # made when it is first shown
        self._positions: dict[Filter, array[int]] = {}
        self._positions_count = 0
        self._refunds: tuple[tuple[str, ...], pl.Series] | None = None  # of the accounts that were asked for last
        self.size = frame_bytes(self._searched) + rows.height * ROW_BYTES
        self._details: pl.DataFrame | None = None
        if rows.width > len(KEPT):
            self._keep_details(rows[[*DETAILS]])

    def __len__(self) -> int:
        return len(self._days)

    @cached_property
    def places(self) -> dict[str, int]:
        """The position of each row in the list, from 0, by its id; made when first needed."""
        self.size += len(self) * INDEX_BYTES
        return {id_: at for at, id_ in enumerate(self.rows["id"].to_list())}

    def of_accounts(self, accounts: Mapping[str, StoredAccount]) -> "Entries":
        """The same bookings, of accounts that may have changed since; what was rendered stays only if none has."""
        other = copy(self)
        if accounts != self._accounts:
            other._accounts, other._json = accounts, [b""] * len(self)
        return other

    def page(self, selection: Selection, *, limit: int, offset: int) -> tuple[int, Sequence[int]]:
        """The number of rows in the selection, and the positions of those on one page: `limit` rows of the selection
        from its row `offset` on."""
        found, first, end = self._found(selection)
        return end - first, found[min(first + offset, end) : min(first + offset + limit, end)]

    def matching(self, selection: Selection) -> pl.DataFrame:
        """All rows of the selection as analytics.frames.BOOKINGS, the latest booking date first."""
        return self._rows_of(self.bookings, selection)

    def search_rows(self, selection: Selection) -> pl.DataFrame:
        """All rows of the selection as analytics.frames.SEARCHED with their positions (`kept_at`), the latest booking
        date first."""
        return self._rows_of(self._searched_rows, selection)

    @cached_property
    def _searched_rows(self) -> pl.DataFrame:
        return for_search(self.rows.with_row_index("kept_at"))

    def _rows_of(self, frame: pl.DataFrame, selection: Selection) -> pl.DataFrame:
        found, first, end = self._found(selection)
        return frame[first:end] if isinstance(found, range) else frame[found[first:end]]

    def refunds(self, account_ids: Sequence[str]) -> pl.Series:
        """The ids of the refunds among the rows of these accounts; kept until other accounts are asked for, because
        finding them takes longer than adding them up."""
        key = tuple(sorted(account_ids))
        if self._refunds is None or self._refunds[0] != key:
            found = refund_ids(self.bookings, self.bookings, selection=key)
            self.size += INDEX_BYTES * (len(found) - (len(self._refunds[1]) if self._refunds is not None else 0))
            self._refunds = key, found
        return self._refunds[1]

    @property
    def has_details(self) -> bool:
        """Whether the columns of DETAILS are there, so that `find` can be called."""
        return self._details is not None

    def add_details(self, details: pl.DataFrame) -> None:
        """Add the columns of storage.transactions.DETAILS; the rows of `details` may be in any order."""
        self._keep_details(self.rows[["id"]].join(details, on="id", how="left", maintain_order="left"))

    def _keep_details(self, details: pl.DataFrame) -> None:
        self.size += frame_bytes(details)
        self._details = details
        self.places  # noqa: B018 - made here, in a thread, and not by the first request that looks one up

    def find(self, id_: str) -> Row | None:
        """One row with all its details; None where there is none. The details must have been loaded
        (AssertionError)."""
        assert self._details is not None, "the details were not loaded"
        at = self.places.get(id_)
        return None if at is None else {**self.rows.row(at, named=True), **self._details.row(at, named=True)}

    def _found(self, selection: Selection) -> tuple[Sequence[int], int, int]:
        """Ascending positions of rows, and the first and end index of that slice of them which is the selection. The
        slice applies its days, the positions everything else."""
        first = bisect_left(self._days, -_days_since_1970(selection.date_to)) if selection.date_to else 0
        end = bisect_right(self._days, -_days_since_1970(selection.date_from)) if selection.date_from else len(self)
        found: Sequence[int] = range(len(self))
        words = (selection.search or "").split()
        if any((selection.category, selection.detailed_category, selection.account_ids is not None, words)):
            found = self._positions_of(selection)
        if selection.ids is not None:
            wanted = {self.places[id_] for id_ in selection.ids if id_ in self.places}
            found = array("I", sorted(wanted.intersection(found)))
        if not isinstance(found, range):
            first, end = bisect_left(found, first), bisect_left(found, end)
        return found, first, end

    def leaves(self, positions: Sequence[int]) -> list[str | None]:
        """The codes of the finer categories of the rows at these positions, None for a row without one."""
        return self.rows["detailed_category"].gather(positions).to_list()

    def json(self, positions: Sequence[int]) -> list[bytes]:
        """The JSON of the rows at these ascending positions, made when a row is first shown and kept."""
        shown = self._kept_json(positions)
        if all(shown):
            return shown
        missing = [at for at in positions if not self._json[at]]
        for at, row in zip(missing, self._rows_at(missing).iter_rows(named=True), strict=True):
            self._json[at] = made = fit_copy(orjson.dumps(self.render(row, self._accounts)))
            self.size += len(made) + OBJECT_BYTES
        return self._kept_json(positions)

    def _rows_at(self, positions: Sequence[int]) -> pl.DataFrame:
        """The rows at these ascending positions; adjacent ones as a slice, because gathering single rows wakes Polars'
        threads."""
        first, end = positions[0], positions[-1] + 1
        return self.rows[first:end] if end - first == len(positions) else self.rows[positions]

    def _kept_json(self, positions: Sequence[int]) -> list[bytes]:
        if isinstance(positions, range):
            return self._json[positions.start : positions.stop]
        return [self._json[at] for at in positions]

    def _positions_of(self, selection: Selection) -> Sequence[int]:
        """The ascending positions of the rows that the selection's category, finer category, accounts and words match,
        whatever its days and ids; kept, because whoever reads one page mostly reads the next."""
        accounts = tuple(sorted(selection.account_ids)) if selection.account_ids is not None else None
        words = tuple(dict.fromkeys((selection.search or "").split()))
        key = selection.category, selection.detailed_category, accounts, words
        kept = self._positions.get(key)
        if kept is not None:
            return kept
        whenever = selection._replace(date_from=None, date_to=None, ids=None).with_parts(self._parts)
        found = array("I", self._searched.select(pl.arg_where(whenever.expression())).to_series().to_list())
        if len(self._positions) >= KEPT_FILTERS_MAX or self._positions_count + len(found) > KEPT_POSITIONS_MAX:
            self._positions.clear()
            self.size -= self._positions_count * found.itemsize
            self._positions_count = 0
        self._positions[key] = found
        self._positions_count += len(found)
        self.size += len(found) * found.itemsize
        return found


def with_leaf(json: bytes, leaf: str | None) -> bytes:
    """The JSON of a row with the member `detailedCategory` added: the code `leaf`, null for None."""
    return b'%b,"detailedCategory":%b}' % (json[:-1], orjson.dumps(leaf))


def fit_copy(json: bytes) -> bytes:
    """A copy that takes only as much memory as it is long; what orjson returns keeps 4 to 8 KB more."""
    return bytes(memoryview(json))


def frame_bytes(frame: pl.DataFrame) -> int:
    """The approximate memory that a frame from the store takes, in bytes."""
    texts = frame.height * sum(dtype == pl.String for dtype in frame.dtypes)
    return int((frame.estimated_size() + TEXT_BYTES * texts) * FRAME_FACTOR)


def _days_since_1970(day: date) -> int:
    return day.toordinal() - _EPOCH
