"""What users are told before a consent ends."""

from datetime import datetime

from storage.connections import StoredConnection

REMINDER_DAYS = (2, 7, 14)  # before the end: urgent, soon, and early enough to be planned


def consent_reminder(connection: StoredConnection, *, now: datetime) -> str | None:
    """That the consent ends within fourteen, seven or two days; None while that is far, and once it has ended."""
    ends = connection.consent_expires_at
    if ends is None or ends <= now:
        return None
    days = next((days for days in REMINDER_DAYS if (ends - now).days < days), None)
    if days is None:
        return None
    return f"The consent for {connection.bank_name} ends in less than {days} days. Renew the connection before."
