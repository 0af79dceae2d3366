"""A connection's way from connecting to removal and back (decision 23)."""

from datetime import datetime, timedelta

import pytest

from storage import accounts, connections
from tests.engines import OpenStore
from tests.storage.conftest import Bank, bookings, make_bank


@pytest.fixture
def bank(database: OpenStore, now: datetime) -> Bank:
    return make_bank(database, now)


@pytest.mark.requirement("decision 23")
def test_a_removed_connection_is_not_synced_and_its_data_stay(bank: Bank) -> None:
    bank.bring(bookings("2026-11-02 | -5.00 | Shop | x"))
    connections.remove(bank.database, bank.user.id, bank.connection.id, now=bank.now)
    assert connections.of_user(bank.database, bank.user.id) == []
    assert connections.statuses(bank.database, bank.user.id) == {bank.connection.id: "DISCONNECTED"}
    assert len(accounts.of_user(bank.database, bank.user.id)) == 1
    assert len(bank.ids()) == 1


@pytest.mark.requirement("decision 23")
def test_connecting_again_renews_a_removed_connection(bank: Bank) -> None:
    connections.remove(bank.database, bank.user.id, bank.connection.id, now=bank.now)
    removed = connections.find(bank.database, bank.user.id, bank.connection.id)
    assert removed is not None
    renewed = connections.renew(bank.database, removed, settings={"accounts": 2})
    assert (renewed.status, renewed.settings) == ("ACTIVE", {"accounts": 2})


@pytest.mark.requirement("decision 23")
def test_three_failures_in_a_row_are_an_error_that_the_next_success_cures(bank: Bank) -> None:
    def state() -> str:
        return connections.statuses(bank.database, bank.user.id)[bank.connection.id]

    for expected in ("ACTIVE", "ACTIVE", "ERROR", "ERROR"):
        connections.record_failure(bank.database, bank.user.id, bank.connection.id, status=None)
        assert state() == expected
    connections.record_success(bank.database, bank.user.id, bank.connection.id)
    assert state() == "ACTIVE"
    connections.record_failure(bank.database, bank.user.id, bank.connection.id, status=None)
    assert state() == "ACTIVE"


@pytest.mark.requirement("decision 23")
def test_a_reason_that_needs_the_user_is_the_state_at_once(bank: Bank) -> None:
    connections.record_failure(bank.database, bank.user.id, bank.connection.id, status="EXPIRED")
    assert connections.statuses(bank.database, bank.user.id)[bank.connection.id] == "EXPIRED"


@pytest.mark.requirement("decision 49")
def test_an_import_by_command_brings_a_removed_connection_back_and_cures_no_other_state(bank: Bank) -> None:
    def state() -> str:
        return connections.statuses(bank.database, bank.user.id)[bank.connection.id]

    connections.remove(bank.database, bank.user.id, bank.connection.id, now=bank.now)
    connections.take_import(bank.database, bank.connection)
    assert state() == "ACTIVE"
    connections.record_failure(bank.database, bank.user.id, bank.connection.id, status="EXPIRED")
    connections.take_import(bank.database, bank.connection)
    assert state() == "EXPIRED"


@pytest.mark.requirement("sync.consent")
def test_a_consent_ends_at_its_moment_and_a_renewal_begins_another(bank: Bank) -> None:
    ends = bank.now + timedelta(days=90)
    connections.keep_consent(bank.database, bank.user.id, bank.connection.id, expires_at=ends)
    for now, expected in ((ends - timedelta(milliseconds=1), "ACTIVE"), (ends, "EXPIRED")):
        connections.expire_consents(bank.database, now=now)
        connections.expire_consents_of(bank.database, bank.user.id, now=now)
        assert connections.statuses(bank.database, bank.user.id)[bank.connection.id] == expected
    later = ends + timedelta(days=90)
    renewed = connections.renew(bank.database, bank.connection, settings={}, consent_expires_at=later)
    assert (renewed.status, renewed.consent_expires_at) == ("ACTIVE", later)
