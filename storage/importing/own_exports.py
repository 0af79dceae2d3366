"""Exports of this service that come back: whose bookings they are."""

from collections.abc import Sequence

from storage.database import Session
from storage.importing.matching.booking_keys import own_id
from storage.importing.records import AccountRecord, TransactionRecord

OWN_IDS_LOOKED_AT = 100  # of a statement; one is enough to know it again


def exported_from(
    session: Session, user_id: str, account: AccountRecord, records: Sequence[TransactionRecord]
) -> str | None:
    """The account that comes back in an export although it has no IBAN: the one whose bookings these are by our
    own ids (or were, in the store that wrote them), or without a booking the one of the same key, currency and
    bank, where there is only one. A file may name any id: it counts only where it names the same money."""
    if account.iban is not None:
        return None
    if records:
        named = {own: record for record in reversed(records) if (own := own_id(record))}
        if not named:
            return None
        first, record = next(reversed(named.items()))
        stored = session.rows(
            "SELECT account_id AS id, id AS own, booking_date, amount, currency FROM transactions"
            " WHERE user_id = $1 AND (id = ANY($2::TEXT[]) OR strpos(identity, $3) > 0)",
            user_id,
            list(named),
            first.removeprefix("txn_"),  # camt has no room for the dash
        )
        money = ("booking_date", "amount", "currency")
        rows = [
            row for row in stored if all(row[name] == getattr(named.get(row["own"], record), name) for name in money)
        ]
    else:
        rows = session.rows(
            "SELECT id FROM accounts WHERE user_id = $1 AND stable_key = $2 AND currency = $3 AND iban IS NULL"
            " AND ($4::TEXT IS NULL OR bank_name = $4)",
            user_id,
            account.stable_key,
            account.currency,
            account.bank_name,
        )
    found = {row["id"] for row in rows}
    return found.pop() if len(found) == 1 else None
