"""The baseline: the contents of accounts before imports were remembered, from which every rebuilding begins."""

import re
from collections.abc import Sequence

from analytics.records import AccountRecord, BookingStatus, TransactionRecord
from storage.database import Session, Transaction, columns_of
from storage.importing import contributions
from storage.importing.batches import spool_statements
from storage.importing.matching.stored_bookings import IN_FULL, as_record

TABLES = ("transactions", "pending_transactions", "statements", "account_sources")
BEFORE_IMPORTS = "before imports were remembered"  # the job id of what a merge records of an older account
OLD_ACCOUNT = ("stable_key", "iban", "name", "kind", "currency", "bank_name", "bic")
WHOSE = (
    "coalesce((SELECT merged.account_id FROM account_aliases AS merged WHERE merged.user_id = $1"
    " AND merged.source_id = earlier_{0}.account_id), earlier_{0}.account_id)"
)
"""The account that has a row of the baseline now: that of a merged account is where this one is, for as long as it
is."""
OLD_PROVIDER_ID = re.compile(r"provider:(.*)#1")


def restore(session: Session, user_id: str, ids: Sequence[str]) -> None:
    columns = ", ".join(columns_of(session, "earlier_accounts"))
    session.execute(
        f"INSERT INTO accounts ({columns}) SELECT {columns} FROM earlier_accounts"
        " WHERE user_id = $1 AND id = ANY($2::TEXT[])",
        *(user_id, ids),
    )
    for table in TABLES:
        names, whose = columns_of(session, f"earlier_{table}"), WHOSE.format(table)
        columns = ", ".join(whose if name == "account_id" else name for name in names)
        session.execute(
            f"INSERT INTO {table} ({', '.join(names)}) SELECT {columns} FROM earlier_{table}"
            f" WHERE user_id = $1 AND {whose} = ANY($2::TEXT[])",
            *(user_id, ids),
        )


def account_ids(session: Session, user_id: str) -> list[str]:
    """The ids of the user's accounts that have a baseline."""
    return [row["id"] for row in session.rows("SELECT id FROM earlier_accounts WHERE user_id = $1", user_id)]


def forget(session: Session, user_id: str, account_id: str) -> None:
    session.execute("DELETE FROM earlier_accounts WHERE user_id = $1 AND id = $2", user_id, account_id)
    for table in TABLES:
        session.execute(
            f"DELETE FROM earlier_{table} WHERE user_id = $1 AND {WHOSE.format(table)} = $2", user_id, account_id
        )


def hand_over(session: Transaction, user_id: str, source_id: str) -> None:
    """Turn the baseline of an account, if it has one, into the user's earliest contribution, so that its bookings are
    compared with those of the account into which it is merged; its statements stay, as they are (WHOSE)."""
    held = session.rows(
        f"SELECT {', '.join(OLD_ACCOUNT)}, connection_id, created_at FROM earlier_accounts"
        " WHERE user_id = $1 AND id = $2",
        *(user_id, source_id),
    )
    for account in held:
        reported, spool = spool_statements(
            [
                AccountRecord(**{name: account[name] for name in OLD_ACCOUNT}),
                *_bookings(session, user_id, source_id, "transactions", "booked"),
                *_bookings(session, user_id, source_id, "pending_transactions", "pending"),
            ]
        )
        contributions.remember(
            session,
            reported,
            spool,
            user_id=user_id,
            job_id=BEFORE_IMPORTS,
            connection_id=account["connection_id"],
            account_id=source_id,
            source_id=source_id,
            batch_id=f"{BEFORE_IMPORTS}:{source_id}",
            label=None,
            imported_at=account["created_at"],
            is_first=True,
        )
    session.execute("DELETE FROM earlier_accounts WHERE user_id = $1 AND id = $2", user_id, source_id)
    for table in TABLES:
        if table != "statements":
            session.execute(f"DELETE FROM earlier_{table} WHERE user_id = $1 AND account_id = $2", user_id, source_id)


def _bookings(
    session: Session, user_id: str, account_id: str, table: str, status: BookingStatus
) -> list[TransactionRecord]:
    rows = session.rows(
        f"SELECT {IN_FULL} FROM earlier_{table}"
        " WHERE user_id = $1 AND account_id = $2 AND NOT is_adjusting_entry ORDER BY booking_date, id",
        *(user_id, account_id),
    )
    found = [(row, OLD_PROVIDER_ID.fullmatch(row["identity"])) for row in rows]
    return [as_record(row, status=status, provider_id=given and given[1]) for row, given in found]
