"""The decisions of users on recurring payments: confirmed or dismissed."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import polars as pl
from msgspec import Struct

from analytics.recurring.news import KnownPayment

CONFIRMED, DISMISSED, UNDECIDED = "confirmed", "dismissed", "none"


class Decision(Struct, frozen=True, kw_only=True):
    """A user's decision, "confirmed" or "dismissed", about the recurring payment that had this id and this latest
    charge at the time."""

    id: str
    transaction_id: str
    confirmation: str


A = TypeVar("A", Decision, KnownPayment)


def with_confirmations(streams: pl.DataFrame, decisions: Iterable[Decision]) -> pl.DataFrame:
    """The streams (SUBSCRIPTIONS) with their `confirmation`: the first of the decisions about each, "none" where the
    user has not decided."""
    said = {id_: about[0].confirmation for id_, about in by_stream(streams, decisions).items()}
    return streams.hstack([pl.Series("confirmation", [said.get(id_, UNDECIDED) for id_ in streams["id"]], pl.String)])


def by_stream(streams: pl.DataFrame, known: Iterable[A]) -> Mapping[str, list[A]]:
    """The facts about each stream (such as decisions) by its id, in their order; those about no stream here are left
    out.

    A fact belongs to the stream that now has its charge; where none has it, to the stream with its id. The charge comes
    first, because another rhythm or beginning changes the id of a stream.
    """
    known = list(known)
    if not known:
        return {}
    ids = set(streams["id"])
    holders = {charge: row["id"] for row in streams.iter_rows(named=True) for charge in row["charge_ids"]}
    about: dict[str, list[A]] = {}
    for each in known:
        meant = holders.get(each.transaction_id, each.id)
        if meant in ids:
            about.setdefault(meant, []).append(each)
    return about
