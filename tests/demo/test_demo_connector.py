"""The demo bank behind the connector protocol: waiting, faults, settings."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta

import pytest
from msgspec.structs import replace

from analytics.records import AccountRecord, Batch
from connectors.connector import (
    Connection,
    Connector,
    ConsentExpired,
    HasNews,
    Misconfigured,
    ProviderUnavailable,
    RateLimited,
    Ready,
    UserActionRequired,
    Waiting,
)
from connectors.sources.demo.connector import ACCOUNTS_MAX, DemoBank
from connectors.sources.demo.households import HOUSEHOLDS

NOW = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)


def connection(id_: str = "con_1", **settings: object) -> Connection:
    return Connection(id=id_, user_id="usr_1", bank_name="Musterbank", settings=settings)


def accounts(found: Connection) -> list[AccountRecord]:
    bank: Connector = DemoBank()
    (batch,) = bank.fetch(found, {}, cursor=None, today=date(2024, 2, 1))
    assert isinstance(batch, Batch)
    return [record for record in batch.records if isinstance(record, AccountRecord)]


@pytest.mark.requirement("demo.refresh")
def test_the_first_poll_waits_and_the_second_is_ready() -> None:
    bank, found = DemoBank(), connection()
    handle = bank.start_refresh(found, now=NOW)
    first = bank.poll_refresh(found, handle, now=NOW)
    assert isinstance(first, Waiting)
    assert first.handle is not None
    assert bank.poll_refresh(found, first.handle, now=NOW) == Ready()


@pytest.mark.requirement("demo.refresh")
def test_the_settings_say_at_which_poll_the_bank_is_ready() -> None:
    assert DemoBank().poll_refresh(connection(polls=1), {"polls": 0, "started": NOW.isoformat()}, now=NOW) == Ready()
    waiting = DemoBank().poll_refresh(connection(polls=3), {"polls": 1, "started": NOW.isoformat()}, now=NOW)
    assert isinstance(waiting, Waiting)


@pytest.mark.requirement("demo.faults")
@pytest.mark.parametrize(
    ("fault", "failure"),
    [("needs_user", UserActionRequired), ("consent_expired", ConsentExpired), ("rate_limited", RateLimited)],
)
def test_a_bank_that_cannot_be_asked_says_so_at_the_start(fault: str, failure: type[Exception]) -> None:
    with pytest.raises(failure):
        DemoBank().start_refresh(connection(fault=fault), now=NOW)


@pytest.mark.requirement("demo.faults")
def test_a_rate_limited_bank_says_when_to_come_back() -> None:
    with pytest.raises(RateLimited) as caught:
        DemoBank().start_refresh(connection(fault="rate_limited"), now=NOW)
    assert caught.value.retry_after == 3600


@pytest.mark.requirement("demo.faults")
def test_a_failing_bank_fails_when_it_should_be_ready() -> None:
    bank, found = DemoBank(), connection(fault="fails")
    waiting = bank.poll_refresh(found, bank.start_refresh(found, now=NOW), now=NOW)
    assert isinstance(waiting, Waiting)
    with pytest.raises(ProviderUnavailable):
        bank.poll_refresh(found, waiting.handle or {}, now=NOW)


@pytest.mark.requirement("demo.faults")
def test_a_slow_bank_is_ready_after_a_minute_and_not_before() -> None:
    bank, found = DemoBank(), connection(fault="slow")
    answer: Waiting | Ready = Waiting(handle=bank.start_refresh(found, now=NOW))
    for seconds in (0, 30, 59.9):
        assert isinstance(answer, Waiting)
        answer = bank.poll_refresh(found, answer.handle or {}, now=NOW + timedelta(seconds=seconds))
    assert isinstance(answer, Waiting)
    assert bank.poll_refresh(found, answer.handle or {}, now=NOW + timedelta(seconds=60)) == Ready()


HOUSEHOLDS_ARE = f"The demo bank's households are {', '.join(HOUSEHOLDS)}."
FAULTS_ARE = "The demo bank's faults are none, fails, needs_user, slow, rate_limited, consent_expired."


@pytest.mark.requirement("demo.settings")
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"household": "castle"}, HOUSEHOLDS_ARE),
        ({"fault": "sleeps"}, FAULTS_ARE),
        ({"accounts": 0}, "The demo bank has 1 to 100 accounts."),
        ({"accounts": ACCOUNTS_MAX + 1}, "The demo bank has 1 to 100 accounts."),
        ({"accounts": "three"}, "The demo bank has 1 to 100 accounts."),
        ({"accounts": True}, "The demo bank has 1 to 100 accounts."),
        ({"polls": 0}, "The demo bank is ready after 1 to 1000 polls."),
        ({"polls": 1001}, "The demo bank is ready after 1 to 1000 polls."),
        ({"seed": 7}, "The demo bank's seed is a text."),
        ({"colour": "blue", "size": 1}, "The demo bank has no setting named colour, size."),
    ],
)
def test_settings_that_make_no_sense_are_refused_in_one_sentence(settings: Mapping[str, object], reason: str) -> None:
    with pytest.raises(Misconfigured) as refusal:
        DemoBank().start_refresh(replace(connection(), settings=settings), now=NOW)
    assert str(refusal.value) == reason


@pytest.mark.requirement("demo.settings")
def test_the_patience_that_the_demo_bank_may_ask_for_ends_at_a_thousand_polls() -> None:
    most = replace(connection(), settings={"polls": 1000})
    assert DemoBank().start_refresh(most, now=NOW)["polls"] == 0


@pytest.mark.no_cover  # whole histories, see tests/conftest.py
@pytest.mark.requirement("demo.settings")
@pytest.mark.parametrize("count", [1, 2, 5, ACCOUNTS_MAX])
@pytest.mark.sampled
def test_a_connection_has_so_many_accounts_as_asked_for_all_different_under_the_banks_name(count: int) -> None:
    found = accounts(connection(accounts=count, bank_name="Bank of Elsewhere"))
    assert len({account.stable_key for account in found}) == count
    assert {account.bank_name for account in found} == {"Bank of Elsewhere"}


@pytest.mark.requirement("demo.settings")
def test_two_connections_without_a_seed_are_two_households() -> None:
    one, other = accounts(connection("con_1")), accounts(connection("con_2"))
    assert not {account.stable_key for account in one} & {account.stable_key for account in other}


@pytest.mark.requirement("demo.refresh")
def test_the_cursor_is_the_day_up_to_which_everything_was_handed_over() -> None:
    bank = DemoBank()
    (batch,) = bank.fetch(connection(), {}, cursor=None, today=date(2026, 11, 20))
    assert batch.cursor == {"day": "2026-11-20"}
    bank.settle(connection(), {}, batch=batch, refusal=None)


@pytest.mark.requirement("demo.refresh")
def test_the_demo_bank_never_asks_for_a_sync_by_itself() -> None:
    assert not isinstance(DemoBank(), HasNews)
