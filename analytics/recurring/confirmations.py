"""What a person has said about recurring payments: that one is theirs, or that it is none."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import polars as pl

CONFIRMED, DISMISSED, UNDECIDED = "confirmed", "dismissed", "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """About the recurring payment that had this id and this latest charge when it was made."""

    id: str
    transaction_id: str
    confirmation: str


class About(Protocol):
    """What is known of the recurring payment that had this id and this latest charge when it came to be known."""

    @property
    def id(self) -> str: ...

    @property
    def transaction_id(self) -> str: ...


A = TypeVar("A", bound=About)


def with_confirmations(found: pl.DataFrame, decisions: Iterable[Decision]) -> pl.DataFrame:
    """The streams (SUBSCRIPTIONS) with their `confirmation`, "none" where nobody has decided."""
    said = {id_: about[0].confirmation for id_, about in by_stream(found, decisions).items()}
    return found.with_columns(
        confirmation=pl.Series([said.get(id_, UNDECIDED) for id_ in found["id"]], dtype=pl.String)
    )


def by_stream(found: pl.DataFrame, known: Iterable[A]) -> Mapping[str, list[A]]:
    """What is known of each stream (its decisions) by its id, in their order. A stream is the one that was meant if it
    holds the charge; only where none does, if it has the id: with another rhythm or another beginning it would have
    another."""
    known = list(known)
    if not known:
        return {}
    ids = set(found["id"])
    holders = {charge: row["id"] for row in found.iter_rows(named=True) for charge in row["charge_ids"]}
    about: dict[str, list[A]] = {}
    for each in known:
        meant = holders.get(each.transaction_id, each.id)
        if meant in ids:
            about.setdefault(meant, []).append(each)
    return about
