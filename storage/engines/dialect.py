"""In what the engines differ where a query has to know it; everything else is one SQL text."""

from dataclasses import dataclass
from typing import Literal

LATE_MATERIALIZATION_ROWS_MAX = 100  # the largest page (interface 4.3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One engine. Other processes may be at work in a store that `is_shared`. `lock_user` comes first in a transaction
    that writes much of a user, so that of two the later one waits instead of working in vain. `one_scan_rows_max` is
    up to how many rows a page is better read in one scan."""

    name: Literal["duckdb", "postgresql"]
    is_shared: bool
    lock_user: str | None
    one_scan_rows_max: int


DUCKDB = Dialect(
    name="duckdb",
    is_shared=False,
    lock_user=None,  # it knows no row locks: the loser fails at the row that the winner has changed
    one_scan_rows_max=5_000,  # of a selection; above, two scans are faster
)
POSTGRESQL = Dialect(
    name="postgresql",
    is_shared=True,
    lock_user="SELECT id FROM users WHERE id = $1 FOR UPDATE",
    one_scan_rows_max=0,  # an index finds the page
)
