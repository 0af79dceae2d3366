"""The differences of the engines that a query has to know; everything else is one SQL text."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The properties of one engine. `is_shared`: other processes may be at work in the store."""

    name: Literal["duckdb", "postgresql"]
    is_shared: bool


DUCKDB = Dialect(
    name="duckdb",
    is_shared=False,
)
POSTGRESQL = Dialect(
    name="postgresql",
    is_shared=True,
)
