"""Ids of recurring payments: one for each contract of a user, whatever selection of accounts shows it."""

import hashlib
from collections.abc import Iterable, Sequence

import polars as pl
from msgspec.structs import replace

from analytics.recurring.charges import EVIDENCE_MONTHS
from analytics.recurring.directions import INCOMING, MARK
from analytics.recurring.payment import RecurringPayment

MONTHS_OF_OLD_STREAMS = 4  # a stream that began in the first months of the evidence may be older


KIND = ("user_id", "currency", pl.coalesce("mandate", "payee"), "frequency")
EVIDENCE_START = pl.col("today").dt.offset_by(f"-{EVIDENCE_MONTHS - MONTHS_OF_OLD_STREAMS}mo")
BEGAN = pl.max_horizontal("first_charged", EVIDENCE_START).alias("began")
PLACE = pl.struct(BEGAN, "month_day", pl.col("charge_ids").list.first()).rank("ordinal").over(KIND)

IDENTITY = pl.concat_str(*KIND, PLACE, separator="\x1f")
"""What the id of a stream is a `digest` of: the user, the first mandate or the payee, the frequency, and the stream's
place among those with the same values.

Neither further charges nor new prices change it, nor does the sliding of the evidence: streams that began before it are
distinguished by their day of the month. Ended ones are counted, so that a present stream does not take the id of one
that stopped.
"""


def named_as_in(
    user_id: str, some: Sequence[RecurringPayment], whole: Sequence[RecurringPayment]
) -> Sequence[RecurringPayment]:
    """The payments of some accounts, with the ids of the same payments among all accounts of the user.

    Payees are determined and streams are counted within the selection, so the same digest may stand for one contract
    here and another there. A payment gets the id of the one among all accounts with the same frequency of whose
    charges, within the same time, it has more than half; each id is given once, to the payment with the most. Two
    contracts that all accounts together show as one never have such a majority. A payment without a counterpart among
    all accounts gets an id made of its first charge.
    """
    claims = [
        (shared, number, other.id)
        for number, each in enumerate(some)
        for other in whole
        if other.frequency == each.frequency and (shared := _count_shared(each.charge_ids, other.charge_ids))
    ]
    ids: dict[int, str] = {}
    for _, number, id in sorted(claims, key=lambda claim: (-claim[0], *claim[1:])):
        if number not in ids and id not in ids.values():
            ids[number] = id
    for number, each in enumerate(some):
        if number not in ids:
            whose = user_id + MARK if each.direction == INCOMING else user_id
            ids[number] = digest("\x1f".join((whose, each.charge_ids[0], each.frequency)))
    return [replace(each, id=ids[number]) for number, each in enumerate(some)]


def _count_shared(charges: Iterable[str], all_charges: Sequence[str]) -> int:
    """The number of `all_charges`, those of a stream among all accounts, oldest first, that are among `charges`; 0
    unless these are more than half of the charges between the first and the last of them."""
    wanted = set(charges)
    places = [place for place, charge in enumerate(all_charges) if charge in wanted]
    return len(places) if places and 2 * len(places) > places[-1] - places[0] + 1 else 0


def digest(identity: str) -> str:
    """The id of a recurring payment, made of an identity: "sub_" and twenty digits of its SHA-256. Polars' own hash may
    change between versions; this one is computed for the few streams, not for charges."""
    return f"sub_{hashlib.sha256(identity.encode()).hexdigest()[:20]}"
