"""The cleanup: which data of the authorization server is deleted, and when."""

from datetime import datetime

from storage.database import Session
from storage.oauth import identities, links, shares, simplefin


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
    """Delete what can never matter again; used codes and refresh tokens stay as long as a second use can expose a
    thief: refresh tokens until they expire, codes a day longer.

    Sessions go that were seen last before `session_seen` or began before `session_born`, those in which nobody is
    signed in after an hour. A grant goes with its last code or refresh token; grants of the client `lasting_client`
    never have one and go a day after they end. A client that registered itself or has a document goes a year after its
    last use, or after a day if it was never used, but not while it has a grant or an open request. Each statement finds
    its rows by an index, so that a sweep costs what it deletes.
    """
    session.execute("DELETE FROM oauth_requests WHERE expires_at < $1", now)
    ended = session.rows("DELETE FROM oauth_codes WHERE expires_at < $1 RETURNING grant_id", day_ago)
    session.execute("DELETE FROM oauth_revoked_tokens WHERE expires_at < $1", now)
    ended += session.rows("DELETE FROM oauth_refresh_tokens WHERE expires_at < $1 RETURNING grant_id", now)
    session.execute("DELETE FROM oauth_sessions WHERE seen_at < $1", session_seen)
    session.execute("DELETE FROM oauth_sessions WHERE created_at < $1", session_born)
    session.execute("DELETE FROM oauth_sessions WHERE user_id IS NULL AND seen_at < $1", hour_ago)
    session.execute("DELETE FROM oauth_throttles WHERE updated_at < $1 AND blocked_until < $1", day_ago)
    session.execute(
        "DELETE FROM oauth_grants WHERE id = ANY($1::TEXT[]) AND client_id <> $2"
        " AND NOT EXISTS (SELECT 1 FROM oauth_refresh_tokens t WHERE t.grant_id = oauth_grants.id)"
        " AND NOT EXISTS (SELECT 1 FROM oauth_codes o WHERE o.grant_id = oauth_grants.id)",
        *(sorted({row["grant_id"] for row in ended}), lasting_client),
    )
    session.execute("DELETE FROM oauth_grants WHERE client_id = $1 AND expires_at < $2", lasting_client, day_ago)
    session.execute("DELETE FROM oauth_grants WHERE client_id = $1 AND revoked_at < $2", lasting_client, day_ago)
    simplefin.sweep(session, day_ago=day_ago)
    links.sweep(session, day_ago=day_ago)
    shares.sweep(session, now=now)
    identities.sweep(session, now=now)
    session.execute(
        "DELETE FROM oauth_clients WHERE registered_by IN ('self', 'document') AND created_at < $1"
        " AND (used_at IS NULL OR used_at < $2)"
        " AND NOT EXISTS (SELECT 1 FROM oauth_grants g WHERE g.client_id = oauth_clients.id)"
        " AND NOT EXISTS (SELECT 1 FROM oauth_requests r WHERE r.client_id = oauth_clients.id)",  # a sign-in goes on
        *(day_ago, year_ago),
    )
