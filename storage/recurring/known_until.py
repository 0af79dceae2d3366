"""Until which day the bookings of each account are known."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from storage.accounts import StoredAccount
from storage.connections import FILE_CONNECTORS
from storage.database import Session


class KnownDays(NamedTuple):
    """What the tables say: which accounts files bring, too; the last booking up to a day of each account that is
    brought by files or was never synced; and `last`, the day up to which this is so, because later bookings are there
    already."""

    by_file: frozenset[str]
    booked: Mapping[str, date]
    last: date

    def until(self, owned: Sequence[StoredAccount], today: date) -> dict[str, date]:
        """For each of these accounts the day until which its bookings are known, at most `today`: the latest of the
        days of its last sync (in UTC, not after the local day but west of it), its balance and its last booking.

        A file proves nothing after its last day, whenever it was brought; so where files bring an account, too, the day
        of the last import does not count.
        """
        return {
            each.id: min(
                max(
                    _synced(each, self.by_file) or date.min,
                    each.balance_date or date.min,
                    self.booked.get(each.id, date.min),
                ),
                today,
            )
            for each in owned
        }


def read(session: Session, user_id: str, owned: Sequence[StoredAccount], *, today: date) -> KnownDays:
    """What the tables say of these accounts up to `today`."""
    brought = session.rows(
        "SELECT s.account_id FROM account_sources AS s, connections AS c WHERE s.user_id = $1 AND c.user_id = $1"
        " AND c.id = s.connection_id AND c.connector = ANY($2::TEXT[])",
        *(user_id, list(FILE_CONNECTORS)),
    )
    by_file = frozenset(row["account_id"] for row in brought)
    unsynced = [each.id for each in owned if _synced(each, by_file) is None]
    days = (
        "SELECT account_id, max(booking_date) FILTER (WHERE booking_date <= $3) AS day,"
        " min(booking_date) FILTER (WHERE booking_date > $3) AS later FROM transactions"
        " WHERE user_id = $1 AND account_id = ANY($2::TEXT[]) GROUP BY account_id"
    )
    rows = session.rows(days, user_id, unsynced, today) if unsynced else []
    later = [row["later"] for row in rows if row["later"] is not None]
    return KnownDays(
        by_file=by_file,
        booked={row["account_id"]: row["day"] for row in rows if row["day"] is not None},
        last=min(later) - timedelta(days=1) if later else date.max,
    )


def _synced(account: StoredAccount, by_file: frozenset[str]) -> date | None:
    return account.last_synced_at.date() if account.last_synced_at is not None and account.id not in by_file else None
