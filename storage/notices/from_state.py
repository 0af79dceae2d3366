"""What the state of connections, balances, accounts and bookings tells people, found in the commit that changes it."""

from collections.abc import Collection, Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal

from analytics.notices.bookings import LOOKED_AT
from analytics.notices.found import Finding
from storage import connections
from storage.connections import FAILURES_MAX, FILE_CONNECTORS, NEED_USER, SHARED
from storage.database import Row, Session
from storage.notices import looks, stored
from storage.notices.stored import LIVE

OF_STATE = ("balance.low", "consent.ending", "sync.failing", "account.same")
OF_BOOKINGS = ("booking.duplicate", "booking.unsorted")
STAGES = (1, 7)  # days before a consent ends
FAILING_FOR = timedelta(hours=48)
NAMED_MAX = 100  # ids in a notice
NO_CATEGORY = "category IS NULL OR (category = 'OTHER' AND category_rule LIKE 'default:%')"


def settle(
    session: Session, user_id: str, now: datetime, balances: Mapping[str, Decimal | None], *, with_bookings: bool
) -> None:
    """Bring the notices that follow from the present state in line with it; `balances` are those of the accounts that
    are shown. `with_bookings`: the transaction has changed bookings, so that those are looked at, too. What
    is there after a restore was told before it."""
    found = [
        *_connections(session, user_id, now, balances),
        *_low_balances(session, user_id, now),
        *_same_accounts(session, user_id),
        *(_bookings(session, user_id, now.date(), balances) if with_bookings else ()),
    ]
    kinds = (*OF_STATE, *(OF_BOOKINGS if with_bookings else ()))
    stored.reconcile(
        session, user_id, kinds, found, today=now.date(), is_known=lambda _: looks.last_look(session, user_id).is_past
    )


def _connections(session: Session, user_id: str, now: datetime, shown: Collection[str]) -> Iterator[Finding]:
    rows = session.rows(
        "SELECT id, connector, bank_name, status, settings, consent_expires_at, failures_in_row FROM connections"
        " WHERE user_id = $1 AND (failures_in_row > 0 OR status <> 'ACTIVE' OR consent_expires_at <= $2) ORDER BY id",
        *(user_id, now + timedelta(days=max(STAGES))),
    )
    for row in rows:
        is_asked = row["connector"] not in FILE_CONNECTORS and row["connector"] not in SHARED
        if row["status"] == "DISCONNECTED" or not is_asked:
            continue
        ends = row["consent_expires_at"]
        ids = [id_ for id_ in connections.account_ids(session, user_id, row["id"]) if id_ in shown]
        if row["status"] in NEED_USER:
            yield _failing(row, ids, now.date(), "sync.failing.person")
        elif ends is not None and now < ends <= now + timedelta(days=max(STAGES)):
            stage = next(days for days in STAGES if ends <= now + timedelta(days=days))
            yield _ending(row, ids, ends, stage)
        elif row["failures_in_row"] >= FAILURES_MAX and '"attended_only":true' not in row["settings"]:
            since = _failing_since(session, user_id, row["id"])
            if since is not None and since <= now - FAILING_FOR:
                yield _failing(row, ids, since.date(), "sync.failing")


def _ending(row: Row, account_ids: list[str], ends: datetime, stage: int) -> Finding:
    return Finding(
        kind="consent.ending",
        subject=row["id"],
        day=ends.date(),
        within=1,
        stage=str(stage),
        message="consent.ending",
        arguments={"bank": row["bank_name"], "day": ends.date().isoformat()},
        account_ids=account_ids,
        connection_id=row["id"],
        due_on=ends.date(),
    )


def _failing(row: Row, account_ids: list[str], since: date, message: str) -> Finding:
    return Finding(
        kind="sync.failing",
        subject=row["id"],
        day=since,
        is_lasting=True,
        message=message,
        arguments={"bank": row["bank_name"], "day": since.isoformat()},
        account_ids=account_ids,
        connection_id=row["id"],
    )


def _failing_since(session: Session, user_id: str, connection_id: str) -> datetime | None:
    """When the first of the syncs failed that failed in a row."""
    rows = session.rows(
        "SELECT min(updated_at) AS since FROM jobs WHERE user_id = $1 AND connection_id = $2 AND status = 'failed'"
        " AND updated_at > coalesce((SELECT max(updated_at) FROM jobs WHERE user_id = $1 AND connection_id = $2"
        " AND status = 'completed'), TIMESTAMP '1970-01-01 00:00:00')",
        *(user_id, connection_id),
    )
    since: datetime | None = rows[0]["since"]
    return since


def _low_balances(session: Session, user_id: str, now: datetime) -> Iterator[Finding]:
    """The accounts below the limit of their person, since one day, but for those that are told to run short anyway."""
    rows = session.rows(
        "SELECT b.account_id, b.amount, b.low_since, a.currency, a.balance FROM balance_alerts AS b, accounts AS a"
        " WHERE b.user_id = $1 AND a.user_id = $1 AND a.id = b.account_id AND a.hidden_at IS NULL AND b.is_low"
        " AND a.balance IS NOT NULL ORDER BY b.account_id",
        user_id,
    )
    ahead = stored.of_kinds(session, user_id, ["overdraft.ahead"]) if rows else []
    short = {id_ for one in ahead if one.state in LIVE for id_ in one.content["accountIds"]}
    for row in rows:
        if row["account_id"] in short:
            continue
        yield Finding(
            kind="balance.low",
            subject=row["account_id"],
            day=row["low_since"] or now.date(),
            is_lasting=True,
            message="balance.low",
            arguments={
                "amount": f"{row['amount'].normalize():f} {row['currency']}",
                "balance": f"{row['balance'].normalize():f} {row['currency']}",
            },
            account_ids=[row["account_id"]],
            amount=row["balance"],
            currency=row["currency"],
        )


def _same_accounts(session: Session, user_id: str) -> Iterator[Finding]:
    rows = session.rows(
        "SELECT id, perhaps_same_as, created_at FROM accounts WHERE user_id = $1 AND hidden_at IS NOT NULL"
        " AND perhaps_same_as IS NOT NULL ORDER BY id",
        user_id,
    )
    for row in rows:
        yield Finding(
            kind="account.same",
            subject=row["id"],
            day=row["created_at"].date(),
            is_lasting=True,
            interrupts=False,
            message="account.same",
            arguments={},
            account_ids=[row["id"], row["perhaps_same_as"]],
        )


def _bookings(session: Session, user_id: str, today: date, balances: Mapping[str, Decimal | None]) -> Iterator[Finding]:
    """What waits to be sorted, and what may be there twice, of the last 60 days; by month, so that who puts one away
    hears of the next. Accounts that another person shares are for that person to look after."""
    for kind, condition in (("booking.duplicate", "is_potential_duplicate"), ("booking.unsorted", f"({NO_CATEGORY})")):
        rows = session.rows(
            "SELECT id, account_id, booking_date FROM transactions WHERE user_id = $1 AND booking_date > $2"
            " AND account_id IN (SELECT a.id FROM accounts AS a, connections AS c WHERE a.user_id = $1"
            " AND c.user_id = $1 AND c.id = a.connection_id AND NOT (c.connector = ANY($4::TEXT[])))"
            f" AND account_id = ANY($3::TEXT[]) AND {condition} ORDER BY booking_date DESC, id",
            *(user_id, today - LOOKED_AT, list(balances), list(SHARED)),
        )
        if not rows:
            continue
        yield Finding(
            kind=kind,
            subject="",
            day=rows[0]["booking_date"].replace(day=1),
            interrupts=False,
            message=kind if len(rows) > 1 else f"{kind}.one",
            arguments={"n": str(len(rows)), "days": str(LOOKED_AT.days)},
            account_ids=sorted({row["account_id"] for row in rows}),
            transaction_ids=[row["id"] for row in rows[:NAMED_MAX]],
        )
