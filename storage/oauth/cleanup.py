"""What the authorization server forgets, and when."""

from datetime import datetime

from storage.database import Session
from storage.oauth.moments import in_utc


def sweep(
    session: Session,
    *,
    now: datetime,
    hour_ago: datetime,
    day_ago: datetime,
    session_seen: datetime,
    session_born: datetime,
    year_ago: datetime,
    lasting_client: str,
) -> None:
    """Delete what can never matter again; used codes and refresh tokens stay as long as they can betray a thief.

    A grant without any refresh token left is dead, except those of `lasting_client`, which never have one. A client
    that registered itself or has a document goes a year after its last use, and after a day without a first one.
    """
    at, old = in_utc(now), in_utc(day_ago)
    session.execute("DELETE FROM oauth_requests WHERE expires_at < $1", at)
    session.execute("DELETE FROM oauth_codes WHERE expires_at < $1", old)
    session.execute("DELETE FROM oauth_revoked_tokens WHERE expires_at < $1", at)
    session.execute("DELETE FROM oauth_refresh_tokens WHERE expires_at < $1", at)
    session.execute(
        "DELETE FROM oauth_sessions WHERE seen_at < $1 OR created_at < $2 OR (user_id IS NULL AND seen_at < $3)",
        in_utc(session_seen),
        in_utc(session_born),
        in_utc(hour_ago),
    )
    session.execute("DELETE FROM oauth_throttles WHERE updated_at < $1 AND blocked_until < $1", old)
    session.execute(
        "DELETE FROM oauth_grants WHERE created_at < $1"
        " AND (redeemed_at IS NULL OR expires_at < $1 OR revoked_at < $1 OR client_id <> $2)"
        " AND NOT EXISTS (SELECT 1 FROM oauth_refresh_tokens t WHERE t.grant_id = oauth_grants.id)"
        " AND NOT EXISTS (SELECT 1 FROM oauth_codes o WHERE o.grant_id = oauth_grants.id)",
        old,
        lasting_client,
    )
    session.execute(
        "DELETE FROM oauth_clients WHERE registered_by IN ('self', 'document') AND created_at < $1"
        " AND (used_at IS NULL OR used_at < $2)"
        " AND NOT EXISTS (SELECT 1 FROM oauth_grants g WHERE g.client_id = oauth_clients.id)"
        " AND NOT EXISTS (SELECT 1 FROM oauth_requests r WHERE r.client_id = oauth_clients.id)",  # a sign-in goes on
        old,
        in_utc(year_ago),
    )
