"""Which id names which recurring payment: one contract of a user, whatever selection of accounts shows it."""

import hashlib
from collections.abc import Iterable, Sequence

import polars as pl

from analytics.frames import SUBSCRIPTIONS
from analytics.recurring.charges import EVIDENCE_MONTHS

MONTHS_OF_OLD_STREAMS = 4  # what began in the first months of the evidence may be older


def with_id(streams: pl.DataFrame) -> pl.DataFrame:
    """Adds `id`: a digest of whose stream it is, its first mandate or its payee, its frequency, and its place among
    the streams that share all of these. Neither further charges nor new prices change it, nor does the sliding of the
    evidence: streams that began before it are told apart by their day of the month. `streams` are those that have
    ended too: one that goes on must not take the id of the one that stopped."""
    kind = ["user_id", "currency", pl.coalesce("mandate", "payee"), "frequency"]
    evidence_start = pl.col("today").dt.offset_by(f"-{EVIDENCE_MONTHS - MONTHS_OF_OLD_STREAMS}mo")
    began = pl.max_horizontal("first_charged", evidence_start)
    place = pl.struct(began.alias("began"), "month_day", pl.col("charge_ids").list.first()).rank("ordinal").over(kind)
    identities = streams.select(pl.concat_str(*kind, place, separator="\x1f")).to_series()
    return streams.with_columns(id=pl.Series(map(digest, identities), dtype=pl.String))


def named_as_in(found: pl.DataFrame, whole: pl.DataFrame) -> pl.DataFrame:
    """The streams of some accounts under the ids that those of all accounts have (both SUBSCRIPTIONS of one user).

    Payees are voted and streams are counted within what is selected, so the same digest may name one contract here
    and another there. A stream has the id of the one of all accounts whose charges it holds, more than half of them
    within its own time; two contracts that all accounts together show as one share no such majority. What no stream
    of all accounts stands for is named by its first charge.
    """
    rows = found.to_dicts()
    claims = [
        (shared, number, other["id"])
        for number, row in enumerate(rows)
        for other in whole.iter_rows(named=True)
        if other["frequency"] == row["frequency"] and (shared := _shared(row["charge_ids"], other["charge_ids"]))
    ]
    ids: dict[int, str] = {}
    for _, number, id in sorted(claims, key=lambda claim: (-claim[0], *claim[1:])):
        if number not in ids and id not in ids.values():
            ids[number] = id
    for number, row in enumerate(rows):
        if number not in ids:
            ids[number] = digest("\x1f".join((row["user_id"], row["charge_ids"][0], row["frequency"])))
    return pl.DataFrame([{**row, "id": ids[number]} for number, row in enumerate(rows)], schema=SUBSCRIPTIONS)


def _shared(charges: Iterable[str], all_charges: Sequence[str]) -> int:
    """How many of a stream's charges, oldest first, are among `charges`; none unless these are more than half of
    those between the first and the last of them."""
    wanted = set(charges)
    places = [place for place, charge in enumerate(all_charges) if charge in wanted]
    return len(places) if places and 2 * len(places) > places[-1] - places[0] + 1 else 0


def digest(identity: str) -> str:
    """An id of a recurring payment. Polars' own hash may change between its versions; this goes over the few streams,
    not over charges."""
    return f"sub_{hashlib.sha256(identity.encode()).hexdigest()[:20]}"
