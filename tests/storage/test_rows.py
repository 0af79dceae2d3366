"""Rows: added once, left as they are, replaced by their key, or changed in part; moments are the same in any zone."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from msgspec import Struct

from storage.database import (
    ConstraintViolated,
    Database,
    add_row,
    add_row_unless_there,
    names_of,
    put_row,
    set_values,
    values_of,
)

SIX = datetime(2026, 3, 1, 6)  # noqa: DTZ001 - as the store keeps it
EIGHT_IN_BERLIN = datetime(2026, 3, 1, 8, tzinfo=timezone(timedelta(hours=2)))


class Written(Struct, frozen=True, kw_only=True):
    """A document, by its columns."""

    name: str
    content: str
    changed_at: datetime


def test_a_row_is_added_once_left_as_it_is_or_replaced(database: Database) -> None:
    first = Written(name="one", content="first", changed_at=EIGHT_IN_BERLIN)
    add_row(database, "documents", **values_of(first))
    with pytest.raises(ConstraintViolated):
        add_row(database, "documents", **values_of(first))
    assert not add_row_unless_there(database, "documents", **{**values_of(first), "content": "second"})
    assert add_row_unless_there(database, "documents", name="two", content="2", changed_at=SIX)
    read = f"SELECT {names_of(Written)} FROM documents WHERE name = $1"
    assert database.rows(read, "one") == [{"name": "one", "content": "first", "changed_at": SIX}]
    put_row(database, "documents", ["name"], **{**values_of(first), "content": "third"})
    put_row(database, "documents", ["name"], name="three", content="3", changed_at=SIX.replace(tzinfo=UTC))
    assert [row["content"] for row in database.rows("SELECT content FROM documents ORDER BY name")] == [
        "third",
        "3",
        "2",
    ]


def test_values_are_set_in_the_rows_that_are_described(database: Database) -> None:
    for name, cursor in (("one", None), ("two", "2"), ("three", None)):
        add_row(
            database,
            "connections",
            **{"user_id": "u1", "id": name, "connector": "files", "bank_name": "B", "status": "ACTIVE"},
            **{"settings": "{}", "cursor": cursor, "failures_in_row": 0, "created_at": SIX},
        )
    assert set_values(database, "connections", {"user_id": "u1", "cursor": None}, status="EXPIRED", cursor="0")
    assert not set_values(database, "connections", {"user_id": "u1", "cursor": None}, status="REVOKED")
    assert set_values(database, "connections", {"user_id": "u1", "id": ["two", "three"]}, cursor=None)
    assert not set_values(database, "connections", {"user_id": "u2", "id": "one"}, status="REVOKED")
    rows = database.rows("SELECT id, status, cursor FROM connections WHERE user_id = $1 ORDER BY id", "u1")
    assert [tuple(row.values()) for row in rows] == [
        ("one", "EXPIRED", "0"),
        ("three", "EXPIRED", None),
        ("two", "ACTIVE", None),
    ]


def test_a_moment_with_a_zone_is_compared_in_utc(database: Database) -> None:
    add_row(database, "documents", name="one", content="", changed_at=SIX)
    for moment, is_found in (
        (EIGHT_IN_BERLIN, True),
        (SIX, True),
        (SIX.replace(tzinfo=UTC), True),
        (SIX + timedelta(seconds=1), False),
    ):
        found = database.rows("SELECT name FROM documents WHERE changed_at = $1", moment)
        assert bool(found) is is_found
