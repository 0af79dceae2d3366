"""How connections to a PostgreSQL server are made, and what their failures mean."""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from storage.database import (
    Conflict,
    ConstraintViolated,
    Session,
    StoreError,
    StoreUnavailable,
    disk_failed,
    store_full,
)
from storage.engines.watched_connection import (
    PATIENT_SECONDS,
    PEER,
    WatchedConnection,
)

CONNECT_SECONDS = 3
STATEMENT_SECONDS = 30  # of a command; requests wait for less (`is_serving`), imports and migrations for longer
# What the server does about a session whose other end has died, so that its transaction does not keep a user's row for
# the two hours of the kernel. TCP's limit also counts while we read nothing, so it is longer than ours in `PEER`; a
# transaction may be idle while an import computes between two statements
WHEN_WE_ARE_GONE = {
    "tcp_user_timeout": "10s",
    "tcp_keepalives_idle": "5s",
    "tcp_keepalives_interval": "2s",
    "tcp_keepalives_count": "3",
    "client_connection_check_interval": "5s",
    "idle_in_transaction_session_timeout": f"{PATIENT_SECONDS:.0f}s",
}
MAY_NOT = (
    "The role of BANKDATA_DATABASE_URL must own its tables and be allowed to make more. A superuser says in this"
    " database: GRANT ALL ON SCHEMA public TO role; ALTER ROLE role SET search_path = public."
)
WRITABLE = "read-write"  # connect to the primary, not to a standby, among several hosts or behind one address
IN_BYTE_ORDER = "SELECT string_agg(letter, '' ORDER BY letter) FROM (VALUES ('a'), ('Z'), ('ä'), ('_')) AS said(letter)"
GONE = re.compile("08|57|53300")  # first digits of SQLSTATEs: no connection, shut down, no slot
DEAD = "57P"  # the server ends this connection; a connection may also end without a message
OF_A_HOST = re.compile(r"- host: .*?, hostaddr: \S+: (.*)")  # how psycopg reports each of several hosts


def check(asked: Session, url: str, *, prepare: bool) -> None:
    """Raise StoreUnavailable where the database cannot be used, StoreError where it does not sort texts by bytes."""
    try:
        encoding = asked.rows("SHOW server_encoding")[0]["server_encoding"]
        order = asked.rows(IN_BYTE_ORDER)[0]["string_agg"]
    except StoreUnavailable as error:
        reason = refusal(url, prepare=prepare) or first_line(error.__cause__ or error)
        raise StoreUnavailable(f"The database at {_without_secrets(url)} cannot be used: {reason}") from error
    if (encoding, order) != ("UTF8", "Z_aä"):
        raise StoreError(
            "The database keeps its texts in another order than that of their bytes. Make one with CREATE DATABASE"
            " bankdata TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8'."
        )


def arguments_of(url: str, *, prepare: bool) -> dict[str, Any]:
    """The arguments of psycopg for every connection to this database, except those that its URL sets itself."""
    given = conninfo_to_dict(url)
    wanted = {"connect_timeout": CONNECT_SECONDS, "target_session_attrs": WRITABLE, **PEER}
    settings = {"timezone": "UTC", "statement_timeout": f"{STATEMENT_SECONDS}s", **WHEN_WE_ARE_GONE}
    options = " ".join([*(f"-c {name}={value}" for name, value in settings.items()), str(given.get("options") or "")])
    return {
        "autocommit": True,
        "cursor_factory": psycopg.RawCursor,
        "prepare_threshold": 5 if prepare else None,
        **{name: value for name, value in wanted.items() if name not in given},
        **({"options": options.rstrip()} if prepare else {}),  # poolers refuse these, too
    }


def set_utc(connection: WatchedConnection) -> None:
    """Set the time zone through a pooler, which repeats it on each connection that it gives. It would not repeat a
    statement timeout, so behind a pooler only the connection's own patience limits statements."""
    connection.execute(b"SET timezone = 'UTC'", prepare=False)


def refusal(url: str, *, prepare: bool) -> str:
    """Try to connect, and return the reason why that fails, which a pool does not say; empty where it succeeds."""
    reason = ""
    try:
        with closing(WatchedConnection.connect(url, **arguments_of(url, prepare=prepare))) as connection:
            connection.patience = CONNECT_SECONDS
            connection.execute(b"SELECT 1")  # a pooler accepts connections even when it has no server
    except psycopg.Error as error:
        reason = "; ".join(OF_A_HOST.findall(str(error))) or first_line(error)
    return reason


def is_connection_lost(connection: WatchedConnection, error: psycopg.Error) -> bool:
    """Whether the connection, or the server behind it, has failed or takes no writes any more, and not just a statement
    has failed."""
    return (
        connection.closed
        or (isinstance(error, psycopg.OperationalError) and (error.sqlstate or DEAD).startswith(DEAD))
        or isinstance(error, errors.ReadOnlySqlTransaction)
    )


def is_read_only(connection: WatchedConnection) -> bool:
    """Whether nothing can be written, as the server itself says: a pooler does not pass on what changes."""
    return connection.execute(b"SHOW transaction_read_only", prepare=False).fetchone() == ("on",)


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise, for a failure of the driver within, the StoreError that says what it means."""
    try:
        yield
    except (errors.SerializationFailure, errors.DeadlockDetected) as error:
        raise Conflict(first_line(error)) from error
    except psycopg.IntegrityError as error:
        raise ConstraintViolated(first_line(error)) from error
    except (errors.InsufficientPrivilege, errors.InvalidSchemaName) as error:
        raise StoreError(f"The database refuses: {first_line(error)}. {MAY_NOT}") from error
    except errors.DiskFull as error:
        raise store_full() from error
    except errors.IoError as error:
        raise disk_failed(error) from error
    except psycopg.OperationalError as error:  # a timeout of the pool is one, too
        if error.sqlstate is None or GONE.match(error.sqlstate):
            raise StoreUnavailable(StoreUnavailable.__doc__) from error
        raise


def first_line(error: BaseException) -> str:
    """What the failure says in its first line; its class where it says nothing."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
