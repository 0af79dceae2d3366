"""Users: one folding for new names, stores of older versions in which two differ by ß alone, and one who leaves."""

import threading
from datetime import datetime, timedelta

import pytest

from analytics.classification.rules import ChosenCategory
from storage import accounts, detections, jobs, kept_layouts, rules, users
from storage.annotations import annotations
from storage.annotations.annotation import Annotation
from storage.database import Database
from storage.detections import Detected
from storage.kept_layouts import KeptLayout
from tests.conftest import NOW
from tests.storage.conftest import NewBank, bookings, dump


def _add_as_before(database: Database, name: str, *, minutes: int) -> None:
    """A row as versions wrote it that compared names by the store's lower()."""
    database.execute(
        "INSERT INTO users (id, name, has_subscription, home_currency, data_version, created_at)"
        " VALUES ($1, $1, TRUE, 'EUR', 0, $2)",
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
    assert {name: users.get_by_name(database, name).name for name in expected} == expected


@pytest.mark.requirement("decision 67")
def test_a_spelling_that_decides_nothing_means_who_came_first(database: Database) -> None:
    _add_as_before(database, "Strauss", minutes=1)
    _add_as_before(database, "Strauß", minutes=0)
    _upgrade(database)
    assert users.get_by_name(database, "ſtrauß").name == "Strauß"


@pytest.mark.requirement("cli.users")
def test_an_accent_may_be_written_in_one_sign_or_in_two(database: Database) -> None:
    _add_as_before(database, "Ève", minutes=0)
    users.take_names(database)
    users.take_names(database)
    assert users.get_by_name(database, "E\u0300VE").name == "Ève"


@pytest.mark.requirement("users.none")
def test_a_new_store_has_nobody_in_it(database: Database) -> None:
    assert users.everyone(database) == []


@pytest.mark.requirement("users.remove")
def test_removing_a_user_leaves_no_row_of_the_user_anywhere(new_bank: NewBank, now: datetime) -> None:
    gone, stays = new_bank("gone"), new_bank("stays")
    for each in (gone, stays):
        each.bring(bookings("2026-11-02 | -5.00 | A | a"))
        with each.database.transaction() as session:
            rules.keep(session, each.user.id, [])
        rules.correct(each.database, each.user.id, "merchant:a", ChosenCategory("DINING"))
        layout = KeptLayout(id="lay_a", file_name="a.csv", profile="{}", account_id=None, kept_at=now)
        kept_layouts.keep(each.database, each.user.id, layout)
        with each.database.transaction() as session:
            [row] = session.rows("SELECT id FROM transactions WHERE user_id = $1", each.user.id)
            said = annotations.with_tags(Annotation(row["id"], note="one"), ["Tag"], now=now)
            annotations.say(session, each.user.id, said, now=now)
        found = Detected("[]", now.date(), now.date())
        detections.keep(each.database, each.user.id, ["a"], data_version=1, found=found)
        jobs.start(
            each.database, user_id=each.user.id, connection_id=each.connection.id, cooldown=timedelta(0), now=now
        )
    before = dump(stays.database)
    gone.database.atomically(lambda session: users.remove(session, gone.user.id))
    for table, rows in dump(gone.database).items():
        assert not [row for row in rows if gone.user.id in row], table
        assert [row for row in rows if stays.user.id in row] == [row for row in before[table] if stays.user.id in row]
    assert len(accounts.of_user(stays.database, stays.user.id)) == 1


@pytest.mark.requirement("users.names")
def test_of_many_at_once_one_gets_a_name(database: Database, now: datetime) -> None:
    made: list[str] = []

    def add(name: str) -> None:
        try:
            users.add(database, name=name, password_hash=None, has_subscription=True, home_currency="EUR", now=now)
            made.append(name)
        except users.UserExists:
            pass

    threads = [threading.Thread(target=add, args=(name,)) for name in ("eva", "Eva", "EVA") * 8]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == len(users.everyone(database)) == 1


@pytest.mark.requirement("users.names")
def test_a_user_who_is_printed_whole_shows_no_password_hash(database: Database, now: datetime) -> None:
    users.add(database, name="eva", password_hash="$argon2$x", has_subscription=True, home_currency="EUR", now=now)
    eva = users.get_by_name(database, "eva")
    assert eva.password_hash == "$argon2$x"
    assert "name='eva'" in repr(eva)
    assert "argon2" not in f"{eva} {eva!r}"
