"""What makes a booking the same booking when it arrives again: its keys, strongest first.

References of banks are not ids (a series of 1,311 real entries has neither entry nor servicer references; end-to-end
ids repeat), and equal content is no proof either (up to 9 % of real entries are equal in account, dates, amount and
text). So a key never stands alone: equal keys are *counted* (storage.importing.matching.exact_matches).
"""

import re
import unicodedata
from decimal import Decimal
from hashlib import sha1, sha256
from uuid import UUID, uuid5

from analytics.records import AccountRecord, TransactionRecord

OWN_ID = re.compile(r"txn_?([0-9a-f]{32})")  # camt keys end at 35 characters: an export leaves the dash out
PROVIDER = "provider:"  # begins the key of a booking whose provider guarantees its id
CONTENT = "content:"  # begins the key of one that has neither such an id nor a reference of its own
FORMER = "was:"  # begins a key in `claims` with the moment of a correction, and the wording before it
NAMESPACE = UUID("6f9c1c3e-52f0-5a3e-9f0e-2b1d6c1f7a10")


def account_id(*, user_name: str, connection_id: str, account: AccountRecord) -> str:
    """The lasting id of an account: made of the user, IBAN and currency, whichever connection brings it; without an
    IBAN, of its connection too. It is the same after a rebuild from the raw files."""
    owner = user_name.casefold()
    source = account.iban or f"{connection_id}|{account.stable_key}"
    return "acc_" + uuid5(NAMESPACE, f"{owner}|{source}|{account.currency}").hex


def transaction_id(account: str, identity: str) -> str:
    """The lasting id of a booking, made only of its account and identity: a UUID of version 5 (RFC 9562, 5.5)."""
    digest = bytearray(sha1(NAMESPACE.bytes + f"{account}|{identity}".encode(), usedforsecurity=False).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50  # the version
    digest[8] = digest[8] & 0x3F | 0x80  # the variant
    return f"txn_{digest.hex()}"


def own_id(record: TransactionRecord) -> str | None:
    """The id that this service once gave the booking, found in one of the record's keys, as in files that it has
    exported; None where there is none."""
    for key in (record.provider_id, *record.references):
        found = OWN_ID.search(key or "")
        if found is not None:
            return f"txn_{found[1]}"
    return None


def fingerprint(record: TransactionRecord, amount: str | None = None) -> str:
    """A hash (32 hex digits) of days, amount, currency, counterpart (IBAN, else name), purpose and mandate of a
    booking, without white space and case, because banks break lines differently per format. `amount` is the amount as
    `plain` writes it, if the caller has that already."""
    counterpart = record.counterpart_iban or record.counterpart_name
    parts = (
        record.booking_date.isoformat(),
        record.value_date.isoformat() if record.value_date else "",
        amount or plain(record.amount),
        record.currency,
        squeeze(counterpart),
        squeeze(record.purpose),
        squeeze(record.mandate_reference),
    )
    return sha256("\x1f".join(parts).encode()).hexdigest()[:32]


def squeeze(text: str | None) -> str:
    """The text in the form for comparisons: without case, white space and variants of one letter; empty for None."""
    if not text:
        return ""
    if text.isascii():  # is its own compatibility form, and most texts of banks are
        return "".join(text.lower().split())
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


def plain(amount: Decimal) -> str:
    """The amount as text, with no more decimals than it needs."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
