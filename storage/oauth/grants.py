"""Grants: a grant is what a user has allowed an app, and the family to which all tokens of that app belong."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Literal, NamedTuple

from msgspec import Struct

from storage.database import Row, Session, add_row, as_json, names_of, set_values, values_of
from storage.oauth import browsers, simplefin
from storage.oauth.moments import aware, with_moments
from storage.oauth.simplefin import SetupToken


class Terms(Struct, frozen=True, kw_only=True):
    """The part of the user's data that a grant covers: `accounts` (None: all), or all but these; with bookings, or
    figures only; with account numbers in full, or shortened for assistants."""

    accounts: tuple[str, ...] | None = None
    all_but: bool = False
    figures_only: bool = False
    full_numbers: bool = False


EVERYTHING = Terms()
OF_TERMS = names_of(Terms)


class Grant(Struct, frozen=True, kw_only=True):
    """The permission that one user gave one app; all tokens that come of it carry its id. `redeemed_at` is None until
    the app has fetched the first of them."""

    id: str
    user_id: str
    client_id: str
    scope: str
    created_at: datetime
    expires_at: datetime
    redeemed_at: datetime | None = None
    revoked_at: datetime | None = None
    revoked_because: str | None = None
    resource: Literal["data", "mcp", "simplefin"] = "data"
    session_hash: str | None = None  # the browser session with which the grant ends
    terms: Terms = EVERYTHING
    has_details: bool = False  # the app asked with authorization_details, and gets them in the answer


COLUMNS = names_of(Grant).replace("terms", OF_TERMS)
HAS_ITS_SESSION = "(g.session_hash IS NULL OR EXISTS (SELECT 1 FROM oauth_sessions s WHERE s.id_hash = g.session_hash))"


class ConnectedGrant(Struct, frozen=True, kw_only=True):
    """A live grant as shown to people, with the names of app and user; `last_used_at` is when its latest refresh token
    was issued, None without any."""

    grant: Grant
    client_name: str
    user_name: str
    last_used_at: datetime | None
    simplefin: SetupToken | None = None


class Standing(Struct, frozen=True, kw_only=True):
    """The standing of a grant: whose it is, whether it is still live (neither revoked nor its browser session gone; it
    ends at `expires_at` in any case), and what its tokens open. A user who is paused counts as without subscription,
    so that their apps wait."""

    user_id: str
    is_live: bool
    expires_at: datetime
    has_subscription: bool
    session_hash: str | None = None  # the browser session with which the grant ends
    terms: Terms = EVERYTHING
    held: frozenset[str] = frozenset()  # accounts that others share with the user, for no app of theirs
    over: frozenset[str] = frozenset()  # of these, those whose share has ended: for nobody


def add(session: Session, grant: Grant) -> None:
    """Store a grant."""
    values = values_of(grant)
    add_row(session, "oauth_grants", **_terms_columns(values.pop("terms")), **values)


def change_terms(session: Session, grant_id: str, *, terms: Terms, scope: str, ends: datetime) -> None:
    """Replace what a grant covers (terms and scope) and when it ends; its refresh tokens are left to the caller."""
    set_values(session, "oauth_grants", {"id": grant_id}, scope=scope, **_terms_columns(terms), expires_at=ends)


def find(session: Session, grant_id: str) -> Grant | None:
    """The grant with this id, live or not; None where there is none."""
    rows = session.rows(f"SELECT {COLUMNS} FROM oauth_grants WHERE id = $1", grant_id)
    return _grant(rows[0]) if rows else None


def live_of_user(session: Session, user_id: str, *, now: datetime) -> list[Grant]:
    """The grants of a user that were neither revoked nor have expired, by id, also those whose tokens have not been
    fetched yet."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM oauth_grants WHERE user_id = $1 AND revoked_at IS NULL AND expires_at > $2 ORDER BY id",
        *(user_id, now),
    )
    return [_grant(row) for row in rows]


def has_its_session(session: Session, grant: Grant) -> bool:
    """Whether the browser session of a grant still exists; True for a grant without one, as most are."""
    return _is_there(session, grant.session_hash)


def redeem(session: Session, grant_id: str, *, now: datetime) -> None:
    """Record that the app has fetched its first tokens."""
    set_values(session, "oauth_grants", {"id": grant_id}, redeemed_at=now)


def revoke(session: Session, grant_id: str, *, because: str, now: datetime) -> bool:
    """End a grant with all its tokens; False when it was revoked before or never existed."""
    live = {"id": grant_id, "revoked_at": None}
    return set_values(session, "oauth_grants", live, revoked_at=now, revoked_because=because)


def revoke_all(
    session: Session,
    *,
    because: str,
    now: datetime,
    user_id: str | None = None,
    client_id: str | None = None,
    before: datetime | None = None,
) -> list[str]:
    """Revoke all grants, not revoked yet, that fit every given condition: of a user, of a client, made before a time
    (without any condition, all grants of the store); returns the user of each."""
    rows = session.rows(
        "UPDATE oauth_grants SET revoked_at = $1, revoked_because = $2 WHERE revoked_at IS NULL"
        " AND (CAST($3 AS TEXT) IS NULL OR user_id = $3) AND (CAST($4 AS TEXT) IS NULL OR client_id = $4)"
        " AND (CAST($5 AS TIMESTAMP) IS NULL OR created_at < $5) RETURNING user_id",
        *(now, because, user_id, client_id, before),
    )
    return [row["user_id"] for row in rows]


def remove_all(session: Session, user_id: str) -> None:
    """Delete a user's grants with their codes and refresh tokens, and the user's SimpleFIN apps."""
    session.execute(
        "DELETE FROM oauth_refresh_tokens WHERE grant_id IN (SELECT id FROM oauth_grants WHERE user_id = $1)", user_id
    )
    session.execute(
        "DELETE FROM oauth_codes WHERE grant_id IN (SELECT id FROM oauth_grants WHERE user_id = $1)", user_id
    )
    simplefin.remove_all(session, user_id)
    session.execute("DELETE FROM oauth_grants WHERE user_id = $1", user_id)


def connected_grants(session: Session, *, now: datetime, user_id: str | None = None) -> list[ConnectedGrant]:
    """The live grants whose tokens were fetched, newest first; of one user, or of everybody.

    A SimpleFIN grant is included as soon as its setup token is made, for as long as the token can be exchanged.
    """
    rows = session.rows(
        f"SELECT {', '.join(f'g.{name}' for name in COLUMNS.split(', '))}, c.name AS client_name,"
        " (SELECT max(t.issued_at) FROM oauth_refresh_tokens t WHERE t.grant_id = g.id) AS last_used_at"
        " FROM oauth_grants g JOIN oauth_clients c ON c.id = g.client_id"
        f" WHERE g.revoked_at IS NULL AND g.expires_at > $1 AND {HAS_ITS_SESSION} AND (g.redeemed_at IS NOT NULL OR"
        " EXISTS (SELECT 1 FROM simplefin_access s WHERE s.grant_id = g.id AND s.code_expires_at > $1))"
        " AND (CAST($2 AS TEXT) IS NULL OR g.user_id = $2) ORDER BY g.created_at DESC, g.id",
        *(now, user_id),
    )
    if not rows:
        return []  # on a cluster, looking up no names would still ask all machines
    # Users may be on other machines than the authorization server's data, hence two queries and no join
    names = {
        row["id"]: row["name"]
        for row in session.rows(
            "SELECT id, name FROM users WHERE id = ANY($1::TEXT[])", sorted({row["user_id"] for row in rows})
        )
    }
    held = simplefin.of_grants(session, [row["id"] for row in rows if row["resource"] == "simplefin"])
    return [
        ConnectedGrant(
            grant=_grant({name: row[name] for name in COLUMNS.split(", ")}),
            client_name=row["client_name"],
            user_name=names[row["user_id"]],
            last_used_at=aware(row["last_used_at"]) if row["last_used_at"] else None,
            simplefin=held.get(row["id"]),
        )
        for row in rows
        if row["user_id"] in names
    ]


def standing(session: Session, grant_id: str, user_id: str, held: "Mapping[str, Held]") -> Standing | None:
    """The standing of a grant of this user, ended or not; None where there is no such grant or user. `held` is what
    `held_by_all` says."""
    rows = session.rows(
        f"SELECT g.user_id, g.session_hash, g.revoked_at, g.expires_at, {OF_TERMS}, u.has_subscription, u.paused_at"
        " FROM oauth_grants AS g, users AS u WHERE g.id = $1 AND g.user_id = $2 AND u.id = $2",
        *(grant_id, user_id),
    )
    if not rows:
        return None
    [row] = rows
    of_others = held.get(row["user_id"], Held())
    return Standing(
        user_id=row["user_id"],
        is_live=row["revoked_at"] is None and _is_there(session, row["session_hash"]),
        expires_at=aware(row["expires_at"]),
        has_subscription=row["has_subscription"] and row["paused_at"] is None,
        session_hash=row["session_hash"],
        terms=_terms(row),
        held=of_others.live | (of_others.ended - of_others.passed_on),
        over=of_others.ended - of_others.live - of_others.passed_on,
    )


class Held(NamedTuple):
    """The accounts of a user that no app of theirs may see, because somebody shares them, or has until now."""

    live: frozenset[str] = frozenset()
    ended: frozenset[str] = frozenset()
    passed_on: frozenset[str] = frozenset()  # which apps may see, too


def held_by_all(session: Session) -> dict[str, Held]:
    """By user: the accounts that others share with them; only of those who have some."""
    found: dict[str, Held] = {}
    for row in session.rows("SELECT receiver_id, held, ended_at, pass_on FROM oauth_shares WHERE held <> '[]'"):
        known = found.get(row["receiver_id"], Held())
        kind = "ended" if row["ended_at"] else "passed_on" if row["pass_on"] else "live"
        ids = getattr(known, kind).union(json.loads(row["held"]))
        found[row["receiver_id"]] = known._replace(**{kind: ids})
    return found


def held_of(session: Session, user_id: str, *, but_passed_on: bool = False) -> frozenset[str]:
    """The accounts of the user that only others tell, who share them: the user cannot share them on, and no app of
    theirs may see them; `but_passed_on` leaves out those that apps may."""
    rows = session.rows(
        "SELECT held FROM oauth_shares WHERE receiver_id = $1 AND held <> '[]' AND NOT ($2 AND pass_on)",
        *(user_id, but_passed_on),
    )
    return frozenset(id_ for row in rows for id_ in json.loads(row["held"]))


def _is_there(session: Session, session_hash: str | None) -> bool:
    return session_hash is None or browsers.find(session, session_hash) is not None


def _grant(row: Row) -> Grant:
    row = with_moments(row)
    kept = {name: value for name, value in row.items() if name not in Terms.__struct_fields__}
    also = {"resource": row["resource"] or "data", "terms": _terms(row), "has_details": bool(row["has_details"])}
    return Grant(**kept | also)


def _terms(row: Row) -> Terms:
    if row["accounts"] is None and not row["figures_only"] and not row["full_numbers"]:
        return EVERYTHING
    return Terms(
        accounts=tuple(json.loads(row["accounts"])) if row["accounts"] is not None else None,
        all_but=bool(row["all_but"]),
        figures_only=bool(row["figures_only"]),
        full_numbers=bool(row["full_numbers"]),
    )


def _terms_columns(terms: Terms) -> dict[str, object]:
    return {**values_of(terms), "accounts": as_json(list(terms.accounts)) if terms.accounts is not None else None}
