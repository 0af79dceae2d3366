"""What the import core accepts: one flat stream of records, whatever the source.

A source (a connector or a statement reader) yields records in this order, any number of times:

    AccountRecord        the account that everything after it belongs to
    TransactionRecord*   its bookings, in the order of the source
    StatementRecord      what the source says about the account as a whole (closes the block)

so that a file of any size streams, and a store needs to know nothing of where data come from.
"""

from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import fields

from analytics.messages import Saying

AccountKind = Literal[
    "checking", "savings", "credit_card", "securities", "loan", "membership", "building_savings", "other"
]
BookingStatus = Literal["booked", "pending"]


class Discreet(Struct, frozen=True):
    """A record with secrets, whose repr shows none of its fields, so that no log and no message does."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


class InvalidRecord(Saying):
    """The source states something that cannot be a booking, or does not say whose booking it is."""


UNNAMED = "unnamed"
"""The key of an account of which its file says nothing at all."""


class AccountRecord(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An account as its source names it; `stable_key` is the IBAN (compact form) where there is one, else the source's
    own lasting key (bank code/number, card number with its middle hidden). `is_anonymous` says that the source does not
    name the account; `kept_for` is then the id of the account that its user has kept for such files."""

    stable_key: str
    currency: str
    iban: str | None = None
    name: str | None = None
    kind: AccountKind | None = None
    bank_name: str | None = None
    bic: str | None = None
    is_anonymous: bool = False  # the source does not say which account it is: the key fits every file of its kind
    is_by_name: bool = False  # the source says no more than a name, such as that of a product, which others have, too
    kept_for: str | None = None  # which account of ours it then is, by what its user has kept with the layout
    part: int = 0  # the file of a container that it stands in: keys and equal bookings are counted within one file


class TransactionRecord(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One booking, as the bank says it: nothing derived, signs applied (negative leaves the account).

    `provider_id` is set only where the source guarantees that it is unique and lasting within the account. `references`
    are weaker keys, strongest first, each with its kind ("servicer:20260131-17/0", "txid:..."); placeholders such as
    NONREF are left out by the reader. Neither end-to-end ids nor mandates are references. `words` is the JSON text of
    what the owner has said about it, in exports of this service; `detail` is its place among the bookings of one entry.
    """

    amount: Decimal
    currency: str
    booking_date: date
    value_date: date | None = None
    status: BookingStatus = "booked"
    provider_id: str | None = None
    references: tuple[str, ...] = ()
    counterpart_name: str | None = None
    counterpart_iban: str | None = None
    counterpart_bic: str | None = None
    counterpart_bank_name: str | None = None
    creditor_id: str | None = None
    debitor_id: str | None = None
    mandate_reference: str | None = None
    end_to_end_id: str | None = None
    purpose: str | None = None
    bank_transaction_code: str | None = None  # ISO 20022: DOMAIN-FAMILY-SUBFAMILY
    purpose_code: str | None = None  # ISO 20022 external purpose code
    gvc: str | None = None  # German Geschaeftsvorfallcode, three digits
    swift_code: str | None = None  # MT940 field 61 (NTRF) or OFX TRNTYPE
    mcc: str | None = None  # merchant category code, four digits
    bank_text: str | None = None  # the bank's own words for the kind of booking
    merchant_name: str | None = None  # only where the source itself names the merchant apart
    original_amount: Decimal | None = None
    original_currency: str | None = None
    is_reversal: bool = False
    is_return: bool = False
    is_potential_duplicate: bool = False  # the source itself takes it for one
    words: str | None = None  # JSON: what its owner says of it, in files that this service has written
    detail: int = 0  # its place among the bookings of one entry: the first of a batch stands for the entry


TEXTS = tuple(each.name for each in fields(TransactionRecord) if each.type == str | None and each.name != "words")
"""The names of the texts that a source tells of a booking, in their order."""


class StatementRecord(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What the source says about the account as a whole; None where it says nothing.

    `closing` is the booked balance (CLBD and its like, never an available one). `is_pending_complete` claims that the
    pending rows before it are all there are: the bank has dropped any other. `told_from` and `told_until` claim that a
    source that is asked for days has reported all bookings of these days, both included; it may be unable to report
    earlier ones. `are_days_complete` is the same claim in records of earlier imports: of each day with a booking, all
    bookings are there. `is_authoritative` claims that closing minus the bookings is the opening balance of a gapless
    history. `corrected` are ids of bookings told before, without the content behind them in `provider_id`, that the
    bank has replaced by others or deleted since; `replaced_by` has the `provider_id` of the other for each, or "".
    `issued_at` is when the bank wrote it, as the bank says it. `credit_line` is how far the bank lets the account go
    below zero, positive.
    """

    opening: Decimal | None = None
    opening_date: date | None = None
    closing: Decimal | None = None
    closing_date: date | None = None
    sequence: str | None = None
    told_from: date | None = None
    told_until: date | None = None
    is_pending_complete: bool = False
    are_days_complete: bool = False
    is_authoritative: bool = False
    corrected: tuple[str, ...] = ()
    replaced_by: tuple[str, ...] = ()
    issued_at: str | None = None  # YYYY-MM-DDTHH:MM:SS
    credit_line: Decimal | None = None
    is_notification: bool = False  # its bookings are perhaps details of what a statement books as a whole (camt.054)


Record = AccountRecord | TransactionRecord | StatementRecord


class Batch(Struct, frozen=True, kw_only=True):
    """What is read at once (one file, one answer of a bank): references are unique within it, or are no keys at all.

    `name` is the name that its user knows (such as that of the file). `warnings` are sentences for the user, which may
    be added while the records are read. `cursor` says where the next fetch goes on once this batch is stored; None
    leaves the cursor unchanged.
    """

    id: str
    records: Iterator[Record]
    warnings: list[str] = field(default_factory=list)
    name: str | None = None
    cursor: Mapping[str, Any] | None = None
