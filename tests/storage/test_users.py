"""Names of users: one folding for new ones, and stores of older versions in which two names differ by ß alone."""

from datetime import timedelta

import pytest

from storage import users
from storage.database import Database
from tests.conftest import NOW


def _add_as_before(database: Database, name: str, *, minutes: int) -> None:
    """A row as versions wrote it that compared names by the store's lower()."""
    database.execute(
        "INSERT INTO users (id, name, has_subscription, home_currency, data_version, journal_sequence, created_at)"
        " VALUES ($1, $1, TRUE, 'EUR', 0, 0, $2)",
        name,
        NOW + timedelta(minutes=minutes),
    )


def _upgrade(database: Database) -> None:
    database.execute("DELETE FROM user_names")
    users.take_names(database)


@pytest.mark.requirement("decision 67")
def test_two_users_of_an_older_store_who_differ_by_one_letter_are_told_apart(database: Database) -> None:
    _add_as_before(database, "Strauß", minutes=0)
    _add_as_before(database, "Strauss", minutes=1)
    _upgrade(database)
    expected = {"Strauß": "Strauß", "strauß": "Strauß", "Strauss": "Strauss", "STRAUSS": "Strauss"}
    assert {name: users.named(database, name).name for name in expected} == expected


@pytest.mark.requirement("decision 67")
def test_a_spelling_that_decides_nothing_means_who_came_first(database: Database) -> None:
    _add_as_before(database, "Strauss", minutes=1)
    _add_as_before(database, "Strauß", minutes=0)
    _upgrade(database)
    assert users.named(database, "ſtrauß").name == "Strauß"


@pytest.mark.requirement("cli.users")
def test_an_accent_may_be_written_in_one_sign_or_in_two(database: Database) -> None:
    _add_as_before(database, "Ève", minutes=0)
    users.take_names(database)
    users.take_names(database)
    assert users.named(database, "E\u0300VE").name == "Ève"


@pytest.mark.requirement("users.none")
def test_a_new_store_has_nobody_in_it(database: Database) -> None:
    assert users.everyone(database) == []
