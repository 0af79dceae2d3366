"""Reminds users before a consent ends."""

from datetime import datetime

from analytics.messages import Message
from storage.connections import NEED_USER, StoredConnection

REMINDER_DAYS = (2, 7, 14)  # before the end: urgent, soon, and early enough to be planned


def consent_ends_within(connection: StoredConnection, *, now: datetime) -> int | None:
    """The least of 2, 7 and 14 such that the bank's consent ends in fewer days than that; None while its end is further
    away or unknown, and once the consent has ended or the connection needs its user anyway."""
    ends = connection.consent_expires_at
    if ends is None or ends <= now or connection.status in NEED_USER:
        return None
    return next((days for days in REMINDER_DAYS if (ends - now).days < days), None)


def consent_reminder(connection: StoredConnection, *, now: datetime) -> Message | None:
    """A sentence for the user if the bank's consent ends in less than 14 days; else None."""
    days = consent_ends_within(connection, now=now)
    if days is None:
        return None
    return Message(
        "The consent for {bank_name} ends in less than {days} days. Renew the connection before.",
        bank_name=connection.bank_name,
        days=days,
    )
