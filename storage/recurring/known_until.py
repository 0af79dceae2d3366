"""Until which day the bookings of each account are known."""

from collections.abc import Sequence
from datetime import date

from storage.accounts import StoredAccount
from storage.connections import FILE_CONNECTORS
from storage.database import Session


def of_accounts(session: Session, user_id: str, owned: Sequence[StoredAccount], *, today: date) -> dict[str, date]:
    """For each of these accounts the day until which its bookings are known, at most `today`: the latest of the days of
    its last sync (in UTC, not after the local day but west of it), its balance and its last booking.

    A file proves nothing after its last day, whenever it was brought; so where files bring an account, too, the day of
    the last import does not count.
    """
    brought = session.rows(
        "SELECT s.account_id FROM account_sources AS s, connections AS c WHERE s.user_id = $1 AND c.user_id = $1"
        " AND c.id = s.connection_id AND c.connector = ANY($2::TEXT[])",
        *(user_id, list(FILE_CONNECTORS)),
    )
    by_file = {row["account_id"] for row in brought}
    synced = {
        each.id: each.last_synced_at.date()
        for each in owned
        if each.last_synced_at is not None and each.id not in by_file
    }
    unsynced = [each.id for each in owned if each.id not in synced]
    last_booked = (
        "SELECT account_id, max(booking_date) AS day FROM transactions"
        " WHERE user_id = $1 AND account_id = ANY($2::TEXT[]) AND booking_date <= $3 GROUP BY account_id"
    )
    booked = session.rows(last_booked, user_id, unsynced, today) if unsynced else []
    last = {row["account_id"]: row["day"] for row in booked}
    return {
        each.id: min(
            max(synced.get(each.id, date.min), each.balance_date or date.min, last.get(each.id, date.min)), today
        )
        for each in owned
    }
