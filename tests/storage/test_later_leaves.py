"""Bookings of before get their finer categories once, one user after another, and nothing else of them changes."""

from datetime import datetime

import pytest

from analytics.classification.facts import edition
from analytics.records import AccountRecord
from storage import store_facts, users
from storage.importing import derivation
from storage.migrations import later_leaves
from tests.storage.conftest import GIRO, Bank, bookings

pytestmark = pytest.mark.requirement("upgrade.detailed categories")
SAVINGS = AccountRecord(stable_key="S1", iban="DE89370400440532013000", currency="EUR", name="Spar", kind="savings")
SEEN = (
    "id, type, type_rule, category, category_rule, merchant_name, merchant_rule, search_text, changed_state"
    " FROM transactions ORDER BY id"
)
LEAVES = "counterpart_name AS name, detailed_category AS leaf, detailed_rule AS rule FROM {} ORDER BY counterpart_name"


@pytest.fixture
def stored(bank: Bank) -> Bank:
    """Bookings, one that is pending, and a transfer to another account; none with a finer category."""
    card = {"bank_text": "KARTENZAHLUNG"}
    bank.bring(
        bookings("2026-11-02 | -50.00 | Shell 3307\n2026-11-03 | -9.00 | Nebel GmbH", **card),
    )
    bank.bring(bookings("2026-11-04 | -7.00 | Aral 12", status="pending", **card))
    bank.bring(bookings("2026-11-05 | -200.00 | Eva | Uebertrag | counterpart_iban=DE89370400440532013000"))
    bank.bring(bookings(f"2026-11-05 | 200.00 | Eva | Uebertrag | counterpart_iban={GIRO.iban}"), account=SAVINGS)
    for table in later_leaves.TABLES:
        bank.database.execute(f"UPDATE {table} SET detailed_category = NULL, detailed_rule = NULL")
    return bank


def test_what_was_stored_before_gets_them_and_keeps_everything_else(stored: Bank) -> None:
    database = stored.database
    database.execute("UPDATE transactions SET category = 'GROCERIES' WHERE counterpart_name = 'Nebel GmbH'")
    before, state = database.rows(f"SELECT {SEEN}"), users.get_by_name(database, stored.user.name)
    later_leaves.fill(database)
    assert database.rows(f"SELECT {SEEN}") == before
    told = [tuple(row.values()) for row in database.rows(f"SELECT {LEAVES.format('transactions')}")]
    own = ("Eva", "SAVINGS_ACCOUNT", derivation.OWN_ACCOUNT_RULE)
    assert told == [own, own, ("Nebel GmbH", None, None), ("Shell 3307", "FUEL", "brand:shell")]
    assert [tuple(row.values()) for row in database.rows(f"SELECT {LEAVES.format('pending_transactions')}")] == [
        ("Aral 12", "FUEL", "brand:aral")
    ]
    assert users.get_by_name(database, stored.user.name).id == state.id


def test_they_are_what_an_import_gives(stored: Bank) -> None:
    later_leaves.fill(stored.database)
    before = stored.database.rows(f"SELECT {LEAVES.format('transactions')}")
    again = stored.database.atomically(lambda session: derivation.derive_again(session, stored.user.id))
    assert len(again) == 0
    assert stored.database.rows(f"SELECT {LEAVES.format('transactions')}") == before


def test_it_is_done_once_and_a_store_without_any_is_left_as_it_is(stored: Bank, now: datetime) -> None:
    database = stored.database
    assert store_facts.recall(database, later_leaves.GIVEN) is None
    later_leaves.fill(database)
    assert store_facts.recall(database, later_leaves.GIVEN) == edition()
    database.execute("UPDATE transactions SET detailed_category = NULL, detailed_rule = NULL")
    later_leaves.fill(database)
    assert {row["leaf"] for row in database.rows(f"SELECT {LEAVES.format('transactions')}")} == {None}


@pytest.mark.requirement("upgrade.learnt leaves")
def test_what_a_later_version_has_learnt_is_given_where_nothing_is_said_yet(stored: Bank, now: datetime) -> None:
    database = stored.database
    store_facts.remember(database, later_leaves.GIVEN, "yes")  # by the version that gave the first ones
    said = "UPDATE transactions SET detailed_category = {}, detailed_rule = {} WHERE counterpart_name = {}"
    database.execute(said.format("'TOLLS'", "'keyword:old'", "'Shell 3307'"))
    database.execute(said.format("NULL", "'chosen'", "'Eva' AND amount < 0"))  # of a booking in parts: nobody says one
    before = database.rows(f"SELECT {SEEN}")
    later_leaves.fill(database)
    told = [tuple(row.values()) for row in database.rows(f"SELECT amount, {LEAVES.format('transactions')}, amount")]
    assert [(name, leaf, rule) for _, name, leaf, rule in told] == [
        ("Eva", None, "chosen"),
        ("Eva", "SAVINGS_ACCOUNT", derivation.OWN_ACCOUNT_RULE),
        ("Nebel GmbH", None, None),
        ("Shell 3307", "TOLLS", "keyword:old"),
    ]
    assert database.rows(f"SELECT {SEEN}") == before
    assert store_facts.recall(database, later_leaves.GIVEN) == edition()


@pytest.mark.long
def test_readers_see_them_at_once(stored: Bank) -> None:
    states = "SELECT state FROM users"
    [before] = stored.database.rows(states)
    later_leaves.fill(stored.database)
    [after] = stored.database.rows(states)
    assert after["state"] > before["state"]
