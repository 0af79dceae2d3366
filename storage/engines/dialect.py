"""The differences of the engines that a query has to know; everything else is one SQL text."""

from dataclasses import dataclass
from typing import Literal

LATE_MATERIALIZATION_ROWS_MAX = 100  # the largest page (interface 4.3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The properties of one engine. `is_shared`: other processes may be at work in the store. `one_scan_rows_max`: up
    to how many rows of a selection a page is read faster in one scan than in two."""

    name: Literal["duckdb", "postgresql"]
    is_shared: bool
    one_scan_rows_max: int


DUCKDB = Dialect(
    name="duckdb",
    is_shared=False,
    one_scan_rows_max=5_000,  # of a selection; above, two scans are faster
)
POSTGRESQL = Dialect(
    name="postgresql",
    is_shared=True,
    one_scan_rows_max=0,  # an index finds the page
)
