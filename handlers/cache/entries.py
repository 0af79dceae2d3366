"""The booked transactions of one user in the order of the list, with each row's JSON as soon as it was shown once."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

import orjson
import polars as pl

from analytics.letters import fold, plain
from storage.accounts import StoredAccount
from storage.transactions import Selection

KEPT_FILTERS_MAX = 64  # combinations of category and accounts whose positions are remembered
_EPOCH = date(1970, 1, 1).toordinal()

Render = Callable[[Mapping[str, Any], Mapping[str, StoredAccount]], dict[str, Any]]
"""A row of the list, and the user's accounts by id, as the JSON object of the contract."""


class Entries:
    """Rows of `storage.transactions.LISTED`, newest first, then by id descending."""

    def __init__(self, rows: pl.DataFrame, accounts: Mapping[str, StoredAccount], render: Render) -> None:
        self._rows = rows.drop("search_text")
        self._texts: list[str] = rows["search_text"].to_list()
        # Newest first: negated, the days ascend, as bisect wants them
        self._days: list[int] = (-rows["booking_date"].to_physical()).to_list()
        self._accounts = accounts
        self._render = render
        self._json: list[bytes | None] = [None] * rows.height
        self._filtered: dict[tuple[str | None, tuple[str, ...] | None], list[int]] = {}
        self.size = int(rows.estimated_size()) + rows.height * 16

    def __len__(self) -> int:
        return len(self._days)

    def positions(self, selection: Selection) -> Sequence[int]:
        """Where the rows of the selection stand, ascending."""
        first = bisect_left(self._days, -_days_since_1970(selection.date_to)) if selection.date_to else 0
        last = bisect_right(self._days, -_days_since_1970(selection.date_from)) if selection.date_from else len(self)
        found: Sequence[int] = range(first, last)
        if selection.category is not None or selection.account_ids is not None:
            filtered = self._positions_of(selection)
            found = filtered[bisect_left(filtered, first) : bisect_left(filtered, last)]
        texts = self._texts
        for word in dict.fromkeys((selection.search or "").split()):
            folded, unfolded = fold(word), plain(word)
            found = [at for at in found if folded in texts[at] or unfolded in texts[at]]
        return found

    def json(self, positions: Sequence[int]) -> list[bytes]:
        """The JSON of the rows at these positions."""
        kept = self._json
        missing = [at for at in positions if kept[at] is None]
        if missing:
            for at, row in zip(missing, self._rows[missing].iter_rows(named=True), strict=True):
                kept[at] = made = orjson.dumps(self._render(row, self._accounts))
                self.size += len(made)
        return [shown for at in positions if (shown := kept[at]) is not None]

    def _positions_of(self, selection: Selection) -> list[int]:
        accounts = tuple(sorted(selection.account_ids)) if selection.account_ids is not None else None
        key = selection.category, accounts
        kept = self._filtered.get(key)
        if kept is not None:
            return kept
        conditions = []
        if selection.category is not None:
            conditions.append(pl.col("category") == selection.category)
        if accounts is not None:
            conditions.append(pl.col("account_id").is_in(accounts))
        found: list[int] = self._rows.select(pl.arg_where(pl.all_horizontal(conditions))).to_series().to_list()
        if len(self._filtered) >= KEPT_FILTERS_MAX:
            self._filtered.clear()
        self._filtered[key] = found
        self.size += 8 * len(found)
        return found


def _days_since_1970(day: date) -> int:
    return day.toordinal() - _EPOCH
