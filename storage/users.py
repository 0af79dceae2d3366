"""The users: people with accounts here."""

import unicodedata
from collections import Counter
from collections.abc import Collection
from datetime import datetime
from secrets import token_hex

from msgspec import Struct

from storage.database import Database, Row, Session, StoreError, add_row, names_of, put_row, set_values, values_of
from storage.row_owners import OF_USERS


class UserExists(StoreError):
    """A user with this name already exists."""


class UserUnknown(StoreError):
    """There is no user with this name."""


class LastOperator(StoreError):
    """This is the last operator who is not paused; one has to remain. Make somebody else an operator first."""

    def __init__(self) -> None:
        super().__init__(self.__class__.__doc__)


class User(Struct, frozen=True, kw_only=True):
    """A user. `data_version` is the state of their data (`Store.state`) in which that last changed by which recurring
    payments are found, `paused_at` when an operator paused them: nobody signs in as them meanwhile, no app reads, no
    bank is asked."""

    id: str
    name: str
    password_hash: str | None
    has_subscription: bool
    home_currency: str
    data_version: int
    created_at: datetime
    is_operator: bool = False
    paused_at: datetime | None = None

    def __repr__(self) -> str:
        return f"User(id={self.id!r}, name={self.name!r})"  # no message or log shows the password's hash


COLUMNS = names_of(User)
OPERATORS_CHANGED = "operators changed"  # the fact that takes another value whenever there are fewer
WAYS_IN_CHANGED = "ways in changed"  # the same, of passkeys, second factors and links to the provider


def find(session: Session, user_id: str) -> User | None:
    """The user with this id; None where there is none."""
    return _first_user(session.rows(f"SELECT {COLUMNS} FROM users WHERE id = $1", user_id))


def compared_name(name: str) -> str:
    """The form of a user name for comparisons: without regard to case or the encoding of letters, and with ß as ss.

    Ids of connections and accounts use `casefold` alone (`storage.importing.matching.booking_keys`); names equal there
    are equal here, too.
    """
    return unicodedata.normalize("NFKC", name.casefold())


def find_by_name(session: Session, name: str) -> User | None:
    """Return the user who signs in with this name, whatever its case and the encoding of its letters; None if there is
    none.

    Older versions allowed two users whose names differ only by ß and ss. Of these, the one spelled exactly so is
    returned, else the one spelled so but for case, else the older one.
    """
    # Compared in Python, because lower() of a database depends on its language
    rows = session.rows("SELECT user_id FROM user_names WHERE name_key = $1 ORDER BY position", compared_name(name))
    alike = [user for row in rows if (user := find(session, row["user_id"])) is not None]
    return max(alike, key=lambda user: (user.name == name, user.name.lower() == name.lower()), default=None)


def get_by_name(session: Session, name: str) -> User:
    """The user with this name, in whatever case. Raises UserUnknown."""
    user = find_by_name(session, name)
    if user is None:
        raise UserUnknown(f"There is no user named {name!r}. `bankdata users list` shows who there is.")
    return user


def is_anybody(session: Session) -> bool:
    """Whether the store has any user."""
    return bool(session.rows("SELECT user_id FROM user_names LIMIT 1"))


def take_names(session: Session) -> None:
    """Enter the users of an older store into the table of names. Two users with equal names get positions in order of
    age."""
    taken = Counter(row["name_key"] for row in session.rows("SELECT name_key FROM user_names"))
    known = {row["user_id"] for row in session.rows("SELECT user_id FROM user_names")}
    for row in session.rows("SELECT id, name FROM users ORDER BY created_at, id"):
        if row["id"] not in known:
            key = compared_name(row["name"])
            _take_name(session, key, taken[key], row["id"])
            taken[key] += 1


def _take_name(session: Session, key: str, position: int, user_id: str) -> None:
    add_row(session, "user_names", name_key=key, position=position, user_id=user_id)


def everyone(session: Session) -> list[User]:
    """All users, sorted by name without regard to case."""
    return [User(**row) for row in session.rows(f"SELECT {COLUMNS} FROM users ORDER BY lower(name), id")]


def new(
    name: str,
    *,
    password_hash: str | None,
    home_currency: str,
    now: datetime,
    has_subscription: bool = True,
    is_operator: bool = False,
    user_id: str | None = None,
) -> User:
    """A user who is not stored yet, without any data; `user_id` is the id to give them, None for a new random one."""
    return User(
        id=user_id or f"u{token_hex(10)}",
        name=name,
        password_hash=password_hash,
        has_subscription=has_subscription,
        home_currency=home_currency,
        data_version=0,
        created_at=now,
        is_operator=is_operator,
    )


def add(
    database: Database,
    *,
    name: str,
    password_hash: str | None,
    has_subscription: bool,
    home_currency: str,
    now: datetime,
    user_id: str | None = None,
) -> User:
    """Add a user without any data, and return them; `user_id` is the id to give them, None for a new random one. Raises
    UserExists for a name that is taken, in whatever case."""
    user = new(
        name,
        password_hash=password_hash,
        home_currency=home_currency,
        now=now,
        has_subscription=has_subscription,
        user_id=user_id,
    )
    database.atomically(lambda session: add_to(session, user))
    return user


def add_to(session: Session, user: User) -> None:
    """Add a user without any data inside the caller's transaction. Raises UserExists as `add` does."""
    known = find_by_name(session, user.name)
    if known is not None:
        raise UserExists(f"There is already a user named {known.name!r}.")
    # Of two at once, one gets the row, and the other finds it at the second try
    _take_name(session, compared_name(user.name), 0, user.id)
    add_row(session, "users", **values_of(user))


def set_password_hash(session: Session, user_id: str, password_hash: str) -> None:
    """Replace the hash of the user's password."""
    set_values(session, "users", {"id": user_id}, password_hash=password_hash)


def renew_password_hash(session: Session, user: User, password_hash: str) -> bool:
    """Replace the hash of the user's password; False where that has been done since the user was read."""
    same = {"id": user.id, "password_hash": user.password_hash}
    return set_values(session, "users", same, password_hash=password_hash)


def change_ways_in(session: Session) -> None:
    """Let one of two transactions that change by what people sign in begin anew, and see what the other has done: both
    change one row. DuckDB sees no conflict in an update that leaves a row as it was."""
    put_row(session, "settings", ["name"], name=WAYS_IN_CHANGED, value=token_hex(8))


def set_subscription(session: Session, user_id: str, *, active: bool) -> None:
    """Set whether the user has an active subscription; without one, the data endpoints answer 403."""
    set_values(session, "users", {"id": user_id}, has_subscription=active)


def set_operator(session: Session, user_id: str, *, is_operator: bool) -> None:
    """Make a user an operator or end that. Raises LastOperator."""
    if not is_operator:
        _keep_an_operator(session, user_id)
    set_values(session, "users", {"id": user_id}, is_operator=is_operator)


def pause(session: Session, user_id: str, *, since: datetime | None) -> None:
    """Pause a user since this time, or (None) no longer. Raises LastOperator."""
    if since is not None:
        _keep_an_operator(session, user_id)
    set_values(session, "users", {"id": user_id}, paused_at=since)


def states(session: Session, user_ids: Collection[str]) -> dict[str, int]:
    """The states of these users' data, by id; users who are gone are absent."""
    rows = session.rows("SELECT id, state FROM users WHERE id = ANY($1::TEXT[])", sorted(user_ids))
    return {row["id"]: int(row["state"]) for row in rows}


def operators(session: Session) -> list[str]:
    """The ids of all operators who are not paused."""
    rows = session.rows("SELECT id FROM users WHERE is_operator AND paused_at IS NULL ORDER BY id")
    return [row["id"] for row in rows]


def paused(session: Session) -> frozenset[str]:
    """The ids of all users who are paused."""
    return frozenset(row["id"] for row in session.rows("SELECT id FROM users WHERE paused_at IS NOT NULL"))


def _keep_an_operator(session: Session, user_id: str) -> None:
    """Raise LastOperator if the user is the only operator who is not paused. Of two transactions that take an operator
    away, the second begins anew and sees what the first has done: both change one row."""
    operators = {row["id"] for row in session.rows("SELECT id FROM users WHERE is_operator AND paused_at IS NULL")}
    if user_id in operators:
        put_row(session, "settings", ["name"], name=OPERATORS_CHANGED, value=token_hex(8))
        if operators == {user_id}:
            raise LastOperator


def set_home_currency(session: Session, user_id: str, currency: str) -> None:
    """Set the currency into which sums over several currencies are converted (decision 19). Figures made before count
    as outdated."""
    session.changes(user_id)
    session.execute("UPDATE users SET home_currency = $2, data_version = state WHERE id = $1", user_id, currency)
    session.execute("DELETE FROM first_answers WHERE user_id = $1", user_id)  # its sums are in that currency


def remove(session: Session, user_id: str) -> None:
    """Delete the user with all their data except those of the authorization server (storage.oauth), such as grants and
    browser sessions, which the caller deletes."""
    for table in (*OF_USERS, "user_names"):
        if table != "users":
            session.execute(f"DELETE FROM {table} WHERE user_id = $1", user_id)
    session.changes(user_id)
    session.execute("DELETE FROM users WHERE id = $1", user_id)


def _first_user(rows: list[Row]) -> User | None:
    return User(**rows[0]) if rows else None
