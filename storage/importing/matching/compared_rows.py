"""A stored booking and an incoming one, as the merge compares them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal

from storage.importing.records import TransactionRecord


@dataclass(frozen=True, slots=True)
class StoredRow:
    """What is known of a stored booking for matching. `source`: who reported it as it stands. `claims`: the ids
    (source:id) by which sources know it, each with the fingerprint of what the source last reported."""

    id: str
    source: str
    identity: str
    fingerprint: str
    references: tuple[str, ...]
    booking_date: date
    amount: Decimal
    currency: str
    counterpart_iban: str | None
    counterpart_name: str | None
    purpose: str | None
    created_at: datetime
    claims: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Item:
    """An incoming booking with its keys; `place` is its own in the batch, `claim` its provider's id together with its
    source."""

    record: TransactionRecord
    place: int
    base: str
    fingerprint: str
    claim: str | None
