"""Matches the bookings of a batch with stored rows where keys or the whole content decide: by joins of frames, counted.

Of equal keys or contents, the n-th reported booking is the n-th stored row. So two equal bookings stay two, and a
hundred thousand equal rows cost no more than different ones. Whatever remains is compared field by field
(storage.importing.matching.likely_matches).
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import polars as pl

from analytics.frames import frame_of
from storage.importing.matching.booking_keys import CONTENT, PROVIDER
from storage.importing.matching.evidence import references_contradict
from storage.importing.matching.stored_bookings import base_of, reported_prints
from storage.importing.spool import PARTING
from storage.importing.teller import FILES

MONEY = ("booking_date", "amount", "currency")
PAIRS: dict[str, pl.DataType] = {"place": pl.UInt32(), "stored_id": pl.String()}
NO_PAIRS = pl.DataFrame(schema=PAIRS)

REPORTED = ("place", *MONEY, "amount_text", "provider_id", "own_id", "references", "fingerprint")  # of spool.KEYS
COMPARED = ("place", *MONEY, "own_id", "fingerprint", "claim", "base", "references")


class Matches(NamedTuple):
    """The `pairs` of `place` and `stored_id`; the remaining bookings and rows; and whether this source's references
    last, so that a different reference means a different booking."""

    pairs: pl.DataFrame
    reported: pl.DataFrame
    stored: pl.DataFrame
    are_references_lasting: bool


def prepare_bookings(reported: pl.DataFrame, source: str) -> pl.DataFrame:
    """The bookings of one account in one batch (spool.KEYS) as COMPARED: with `claim`, the provider's id within the
    source, and `base`, the key from which a new booking gets its identity, to which an ordinal is added.

    The key is the provider's id; else the strongest reference that is unique within the batch, with day and amount;
    else the content. If an id occurs twice with the same day and amount, as where two pages overlap, the last one
    counts.
    """
    claimed = reported[[*REPORTED]].with_columns(claim=pl.lit(f"{source}:") + pl.col("provider_id"))
    if claimed["claim"].drop_nulls().is_duplicated().any():
        claimed = _each_claim_once(claimed)
    references = claimed["references"]  # which makes the texts of some at a time
    number = Counter(chain.from_iterable(text.split(PARTING) for text in references))
    number[""] = 0
    unique = [next((each for each in text.split(PARTING) if number[each] == 1), None) for text in references]
    del number
    day = pl.col("booking_date").dt.to_string("%Y-%m-%d")
    dated = pl.concat_str(pl.Series(unique, dtype=pl.String), day, "amount_text", separator="|")
    base = pl.coalesce(pl.lit(PROVIDER) + pl.col("provider_id"), dated, pl.lit(CONTENT) + pl.col("fingerprint"))
    return claimed.with_columns(base=base)[[*COMPARED]]


def exact_matches(reported: pl.DataFrame, stored: pl.DataFrame) -> Matches:
    """The matches of bookings (from `prepare_bookings`) and rows (STORED), tried in this order: our own id inside the
    source's; an id or a reference together with equal words; equal words alone; an id or a reference with different
    words. The words of a row are its own, and those in which each source last reported it.

    On days that a live source was asked for, and on those reported completely, a different reference does not matter.
    Elsewhere, equal words with a different reference are another booking, with two exceptions in which references say
    nothing: most references have changed; or the row's references come from other sources, and no row of theirs was
    matched by an id or a reference.
    """
    found: list[pl.DataFrame] = []

    def take(pairs: pl.DataFrame) -> None:
        nonlocal reported, stored
        found.append(pairs)
        reported, stored = left_over(reported, stored, pairs)

    own = reported.filter(pl.col("own_id").is_not_null())
    if not own.is_empty():
        own = own.join(stored, left_on=["own_id", *MONEY], right_on=["id", *MONEY], maintain_order="left")
    take(own.unique("own_id", keep="first", maintain_order=True).select("place", stored_id="own_id"))
    if reported.is_empty() or stored.is_empty() or not _may_match(reported, stored):
        return Matches(found[0], reported, stored, are_references_lasting=True)
    of_others = stored.filter("is_other_source")["id"].implode()
    is_named = pl.col("claim").is_not_null()
    take(_pair(reported.filter(is_named), _in_last_words(stored), ("claim", "fingerprint")))
    take(_pair(reported.filter(~is_named), _stored_with_base(stored), ("base", "currency", "fingerprint")))
    alike = _pair(reported, _in_last_words(stored), ("fingerprint",))
    alike = pl.concat([alike, _pair(*left_over(reported, stored, alike), ("fingerprint",))])
    alike = pl.concat([alike, _pair_others_words(*left_over(reported, stored, alike))])
    named = _by_name(*left_over(reported, stored, alike))
    likely = _pair(*left_over(reported, stored, pl.concat([alike, named])), MONEY)
    agreeing = pl.concat([*found[1:], named])
    if agreeing.is_empty() and alike.is_empty() and likely.is_empty():
        return Matches(found[0], reported, stored, are_references_lasting=True)
    # by this source with those that reported the rows
    are_shared = pl.lit(agreeing["stored_id"].is_in(of_others).any())
    stored = stored.with_columns(pl.col("has_its_references") | are_shared)
    contradicting = contradictions(reported, stored, pl.concat([alike, likely]))
    are_lasting = contradicting.height <= agreeing.height + 1  # a single one is a twin, several are an id that changes
    if are_lasting:
        twins = contradicting.filter(~pl.col("is_asked_for") & pl.col("has_its_references"))
        alike = alike.filter(~pl.col("place").is_in(twins["place"].implode()))
    take(alike)
    if are_lasting:
        take(_by_name(reported, stored))
    return Matches(pl.concat(found), reported, stored, are_lasting)


def left_over(reported: pl.DataFrame, stored: pl.DataFrame, known: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The bookings and the rows that are not among these pairs."""
    if known.is_empty():
        return reported, stored
    return (
        reported.filter(~pl.col("place").is_in(known["place"].implode())),
        stored.filter(~pl.col("id").is_in(known["stored_id"].implode())),
    )


def new_identities(bases: Iterable[str], highest: Mapping[str, int]) -> Iterator[str]:
    """The identity of each new booking, in their order: its key (`bases`) with the next ordinal; `highest` has the
    highest stored ordinal of each key, and those without one begin with 1."""
    number = Counter(highest)
    for base in bases:
        number[base] += 1
        yield f"{base}#{number[base]}"


def _may_match(reported: pl.DataFrame, stored: pl.DataFrame) -> bool:
    """Whether any row has an id, a key, words, or a day and an amount of these bookings, or words of other sources."""
    same = {"fingerprint": "fingerprint", "reported_print": "fingerprint", "claim": "claim"}
    is_same = [pl.col(name).is_in(reported[other].implode()) for name, other in same.items()]
    is_same += [pl.col("claims").is_not_null(), base_of("identity").is_in(reported["base"].implode())]
    is_same.append(pl.all_horizontal(pl.col(name).is_in(reported[name].implode()) for name in MONEY))
    return bool(stored.select(pl.any_horizontal(is_same).any()).item())


def _each_claim_once(reported: pl.DataFrame) -> pl.DataFrame:
    ordered = reported.with_row_index("order")
    first = pl.col("order").min().over("claim", *MONEY)  # the place of a repeated one
    order = pl.when(pl.col("claim").is_null()).then("order").otherwise(first)
    return ordered.with_columns(order=order).unique("order", keep="last").sort("order").drop("order")


def _is_lasting_id() -> pl.Expr:
    """Whether a booking has an id that is more than a number from a file."""
    return (~pl.col("claim").str.starts_with(f"{FILES}:")).fill_null(value=False)


def _by_name(reported: pl.DataFrame, stored: pl.DataFrame) -> pl.DataFrame:
    """Pairs by an id or a reference, whatever the words; a row whose key was made of its content, by that content, but
    only on the same day, because a pending booking may have booked on another day."""
    claimed = _pair(reported.filter(_is_lasting_id()), stored, ("claim", *MONEY))
    reported, stored = left_over(reported, stored, claimed)
    reported, stored = reported.filter(pl.col("claim").is_null()), _stored_with_base(stored)
    is_content = pl.col("base").str.starts_with(CONTENT)
    by_reference = _pair(reported, stored.filter(~is_content), ("base", "currency"))
    by_content = _pair(reported, stored.filter(is_content), ("base", "currency", "booking_date"))
    return pl.concat([claimed, by_reference, by_content])


def _stored_with_base(stored: pl.DataFrame) -> pl.DataFrame:
    return stored.with_columns(base=base_of("identity")).filter(~pl.col("base").str.starts_with(PROVIDER))


def _in_last_words(stored: pl.DataFrame) -> pl.DataFrame:
    return stored.filter(pl.col("reported_print").is_not_null()).with_columns(fingerprint="reported_print")


def _pair_others_words(reported: pl.DataFrame, stored: pl.DataFrame) -> pl.DataFrame:
    """Pairs of a booking and a row that another source last reported in the same words, whatever the row's own
    words."""
    if stored["claims"].null_count() == stored.height:
        return NO_PAIRS
    near = reported_prints(stored.join(reported, on=MONEY, how="semi")).with_columns(fingerprint="reported")
    pairs = _pair(reported, near.unique(("id", "fingerprint")).sort("id"), ("fingerprint",))
    return pairs.unique("stored_id", keep="first", maintain_order=True)


def contradictions(reported: pl.DataFrame, stored: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Those of the pairs whose ids, or whose references of the same kind, differ: `place` of the booking,
    `stored_id`, `has_its_references` and `is_asked_for` of the row."""
    of_row = ("has_its_references", "is_asked_for")
    theirs = stored.select(*of_row, stored_id="id", stored_references="references", stored_claim="claim")
    ours = reported.select("place", "references", "claim")
    both = pairs.join(ours, on="place").join(theirs, on="stored_id")
    is_other_id = (pl.col("claim") != pl.col("stored_claim")).fill_null(value=False) & _is_lasting_id()
    may_differ = both.filter((pl.col("references") != "") & (pl.col("stored_references") != "[]"))
    rows = may_differ.select("place", "references", "stored_references").iter_rows()
    differing = [place for place, now, known in rows if references_contradict(now.split(PARTING), json.loads(known))]
    is_other_reference = pl.col("place").is_in(pl.Series(differing, dtype=pl.UInt32).implode())
    return both.filter(is_other_id | is_other_reference).select("place", "stored_id", *of_row)


def _pair(reported: pl.DataFrame, rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Pairs (`place`, `stored_id`) of the n-th booking and the n-th row with equal keys."""
    near = rows if reported.is_empty() else rows.join(reported, on=keys, how="semi", maintain_order="left")
    if reported.is_empty() or near.is_empty():
        return NO_PAIRS
    are_counted = any(each.select(keys).is_duplicated().any() for each in (reported, near))
    number = (pl.int_range(pl.len()).over(keys) if are_counted else pl.lit(0)).alias("number")
    ours, theirs = reported.lazy().select("place", *keys, number), near.lazy().select(*keys, number, stored_id="id")
    return frame_of(ours.join(theirs, on=[*keys, "number"]).select("place", "stored_id"))
