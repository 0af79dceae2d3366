"""What is new of recurring payments is told once, as it becomes known."""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta

import pytest
from msgspec.structs import replace

from analytics.records import AccountRecord, TransactionRecord
from auth.scopes import READ_ACCOUNTS
from handlers.operations.events.event_shapes import data_of, receives
from handlers.work.sync.detection import detect_after_import
from handlers.work.sync.recurring import recurring_news
from storage import connections
from storage.connections import StoredConnection
from storage.events.outbox import StoredEvent
from storage.recurring import looks
from tests.imports.household import Household
from tests.imports.test_change_feed import CARD, GIRO, Life, booked
from tests.imports.test_events import caller, now_at, told

TODAY = date(2026, 11, 20)


class Payments(Life):
    """A household on a day of November 2026, looked at after each import."""

    def __init__(self, eva: Household) -> None:
        super().__init__(eva)
        self.seen = 0
        self.becomes(TODAY)

    def of_connector(self, name: str) -> StoredConnection:
        """A connection of this kind."""
        now, user = self.eva.services.clock.now(), self.eva.user
        return self.eva.services.everybody.atomically(
            lambda session: connections.add(
                session, user_id=user.id, user_name="eva", connector=name, bank_name=name, settings={}, now=now
            )
        )

    def becomes(self, day: date) -> None:
        """It is noon of this day."""
        clock = self.eva.services.clock
        clock.offset += datetime.combine(day, time(12)) - clock.now()
        assert clock.today() == day

    def brings(self, account: AccountRecord, *records: TransactionRecord) -> list[str]:
        self.bring(account, *records)
        detect_after_import(self.eva.services.everybody, [self.eva.user.id], today=self.eva.services.clock.today())
        return self.news()

    def passes_until(self, day: date) -> list[str]:
        """It is this day, and no bank was asked meanwhile."""
        self.becomes(day)
        self.eva.services.scheduler.round()
        detect_after_import(self.eva.services.everybody, [self.eva.user.id], today=day)
        return self.news()

    def asked_on(self, day: date) -> list[str]:
        """The bank is asked on this day and has nothing."""
        self.becomes(day)
        return self.brings(GIRO)

    def events(self) -> list[StoredEvent]:
        """Those of recurring payments since they were read last."""
        found = [each for each in told(self, self.seen) if each.type.startswith("subscription.")]
        self.seen = now_at(self)
        return found

    def news(self) -> list[str]:
        return [
            " ".join(
                text.removeprefix("subscription.")
                for text in (each.type, each.data.get("retracts", ""), each.data.get("expected", ""))
                if text
            )
            for each in self.events()
        ]


@pytest.fixture
def payments(eva: Household) -> Payments:
    return Payments(eva)


def charged(name: str, day: int, *months: int, amount: str = "-12.99") -> Sequence[TransactionRecord]:
    return [booked(f"2026-{month:02}-{day:02}", amount, name, "Abo") for month in months]


@pytest.mark.requirement("events.recurring")
def test_what_a_first_look_at_an_account_finds_is_not_new_and_what_comes_later_is(payments: Payments) -> None:
    payments.brings(GIRO)
    assert payments.brings(GIRO, *charged("Streambox", 15, 6, 7, 8, 9, 10, 11)) == []
    assert payments.brings(CARD, *charged("Musikbox", 3, 6, 7, 8, 9, 10, 11)) == []
    assert payments.brings(GIRO, *charged("Fitnesswelt", 5, 9, 10, 11, amount="-29.90")) == ["new"]
    assert payments.brings(GIRO, *charged("Kino", 19, 11)) == []
    payments.eva.services.scheduler.round()
    detect_after_import(payments.eva.services.everybody, [payments.eva.user.id], today=TODAY)
    assert payments.news() == []


@pytest.mark.requirement("events.recurring")
def test_a_new_price_is_told_of_a_payment_that_has_one(payments: Payments) -> None:
    of_streambox = [*charged("Streambox", 15, 6, 7, 8, 9), *charged("Streambox", 15, 10, amount="-9.99")]
    used = [booked(f"2026-{month:02}-03", f"-{40 + 3 * month}.17", "Stadtwerk", "Strom") for month in range(3, 11)]
    payments.becomes(date(2026, 10, 20))
    assert payments.brings(GIRO, *of_streambox, *used) == []
    payments.becomes(TODAY)
    another = booked("2026-11-03", "-99.99", "Stadtwerk", "Strom")
    assert payments.brings(GIRO, another, *charged("Streambox", 15, 11, amount="-9.99")) == []
    payments.becomes(date(2026, 12, 16))
    news = payments.brings(
        GIRO,
        booked("2026-12-03", "-61.10", "Stadtwerk", "Strom"),
        *charged("Streambox", 15, 12, amount="-14.99"),
    )
    assert news == ["price_changed"]


@pytest.mark.requirement("events.recurring")
def test_a_missed_charge_and_the_end_are_told_once_the_bank_was_asked_after_them(payments: Payments) -> None:
    payments.brings(GIRO, *charged("Streambox", 15, 6, 7, 8, 9, 10, 11))
    assert payments.asked_on(date(2026, 12, 20)) == []
    assert payments.asked_on(date(2026, 12, 21)) == ["missed 2026-12-15"]
    assert payments.asked_on(date(2026, 12, 22)) == []
    assert payments.asked_on(date(2027, 1, 16)) == []
    assert payments.asked_on(date(2027, 1, 17)) == ["ended"]
    assert payments.asked_on(date(2027, 6, 1)) == []
    payments.becomes(date(2027, 6, 15))
    again = [booked(f"2027-{month:02}-15", "-12.99", "Streambox", "Abo") for month in (2, 3, 4, 5, 6)]
    assert payments.brings(GIRO, *again) == ["new"]


@pytest.mark.requirement("events.recurring")
def test_while_nobody_asks_the_bank_nothing_is_missed_or_over(payments: Payments) -> None:
    payments.brings(GIRO, *charged("Streambox", 15, 6, 7, 8, 9, 10, 11))
    assert payments.asked_on(date(2026, 12, 16)) == []
    assert payments.passes_until(date(2027, 3, 1)) == []
    later = [booked(f"{month}-15", "-12.99", "Streambox", "Abo") for month in ("2026-12", "2027-01", "2027-02")]
    assert payments.brings(GIRO, *later) == []


@pytest.mark.requirement("events.recurring")
def test_a_bank_that_was_not_asked_for_long_tells_all_when_it_is(payments: Payments) -> None:
    payments.brings(GIRO, *charged("Streambox", 15, 6, 7, 8, 9, 10, 11))
    assert payments.asked_on(date(2027, 3, 1)) == ["missed 2026-12-15", "ended"]


@pytest.mark.requirement("events.recurring")
def test_an_account_of_files_is_known_until_the_last_day_that_they_tell(payments: Payments) -> None:
    live, payments.live = payments.live, payments.of_connector("files")
    payments.brings(GIRO, *charged("Streambox", 15, 6, 7, 8, 9, 10))
    payments.becomes(date(2026, 12, 30))
    assert payments.brings(GIRO, booked("2026-11-20", "-9.00", "Kino", "Karten")) == []
    assert payments.brings(GIRO, booked("2026-11-21", "-9.00", "Kino", "Karten")) == ["missed 2026-11-15"]
    payments.live = live


@pytest.mark.requirement("events.recurring")
def test_what_was_told_and_turns_out_untrue_is_retracted(payments: Payments) -> None:
    payments.brings(GIRO, *charged("Streambox", 15, 6, 7, 8, 9, 10, 11))
    assert payments.asked_on(date(2026, 12, 21)) == ["missed 2026-12-15"]
    assert payments.asked_on(date(2027, 1, 18)) == ["ended"]
    assert payments.brings(GIRO, booked("2026-12-17", "-12.99", "Streambox", "Abo")) == [
        "retracted missed 2026-12-15",
        "retracted ended",
    ]
    assert payments.asked_on(date(2027, 1, 19)) == []
    assert payments.asked_on(date(2027, 1, 21)) == ["missed 2027-01-15"]


@pytest.mark.requirement("events.recurring")
def test_of_several_missed_charges_those_that_came_are_retracted_and_no_other(payments: Payments) -> None:
    weekly = [booked(TODAY - timedelta(days=7 * week), "-25.50", "Gemüsekiste", "Kiste") for week in range(8)]
    payments.brings(GIRO, *weekly)
    assert payments.asked_on(date(2026, 12, 1)) == ["missed 2026-11-27"]
    payments.becomes(date(2026, 12, 4))
    assert payments.brings(GIRO, booked("2026-12-04", "-25.50", "Gemüsekiste", "Kiste")) == []
    assert payments.asked_on(date(2026, 12, 15)) == ["missed 2026-12-11"]
    payments.becomes(date(2026, 12, 18))
    late = [booked(day, "-25.50", "Gemüsekiste", "Kiste") for day in ("2026-11-28", "2026-12-18")]
    assert payments.brings(GIRO, *late) == ["retracted missed 2026-11-27"]


@pytest.mark.requirement("events.recurring")
def test_a_charge_that_comes_late_begins_the_count_anew(payments: Payments) -> None:
    payments.brings(GIRO, *charged("Streambox", 16, 6, 7, 8, 9, 10))
    assert payments.asked_on(date(2026, 11, 22)) == ["missed 2026-11-16"]
    assert payments.brings(GIRO, booked("2026-11-22", "-12.99", "Streambox", "Abo")) == ["retracted missed 2026-11-16"]
    assert payments.asked_on(date(2026, 12, 25)) == ["missed 2026-12-16"]


@pytest.mark.requirement("events.recurring")
def test_while_a_connection_needs_its_user_nothing_counts_as_missed(payments: Payments) -> None:
    everybody, user_id = payments.eva.services.everybody, payments.eva.user.id
    payments.brings(GIRO, *charged("Streambox", 15, 6, 7, 8, 9, 10, 11))
    everybody.atomically(lambda session: connections.need_user(session, user_id, payments.live.id))
    assert payments.passes_until(date(2026, 12, 21)) == []
    assert payments.passes_until(date(2027, 1, 20)) == []
    everybody.atomically(lambda session: connections.record_success(session, user_id, payments.live.id))
    assert payments.asked_on(date(2027, 1, 27)) == ["missed 2026-12-15", "ended"]


@pytest.mark.requirement("events.recurring")
def test_nothing_is_told_of_what_a_person_dismissed(payments: Payments) -> None:
    payments.brings(GIRO, *charged("Streambox", 15, 6, 7, 8, 9, 10, 11))
    payments.do("subscriptions list")
    id_ = payments.eva.lines[-1].split("\t")[0]
    payments.do("subscriptions dismiss", subscription_id=id_, confirmation="dismissed")
    assert payments.asked_on(date(2026, 12, 21)) == []
    payments.do("subscriptions reset", subscription_id=id_, confirmation="none")
    assert payments.asked_on(date(2027, 1, 17)) == ["ended"]


@pytest.mark.requirement("events.recurring")
def test_a_payment_that_is_lost_and_found_again_is_not_new(payments: Payments) -> None:
    payments.brings(GIRO, *charged("Streambox", 15, 6, 7, 8))
    payments.becomes(date(2026, 11, 21))
    everybody, user_id = payments.eva.services.everybody, payments.eva.user.id
    account = payments.account(GIRO)
    payments.do("accounts hide", account=account, is_hidden=True)
    payments.do("accounts show", account=account, is_hidden=False)
    assert payments.brings(GIRO, *charged("Kino", 20, 11)) == []
    last = looks.last_look(everybody, user_id)
    assert last is not None
    assert [each.last_charged for each in last.payments] == [date(2026, 8, 15)]
    payments.do("accounts hide", account=account, is_hidden=True)
    payments.becomes(date(2028, 10, 1))
    detect_after_import(everybody, [user_id], today=date(2028, 10, 1))
    forgotten = looks.last_look(everybody, user_id)
    assert forgotten is not None
    assert forgotten.payments == [], "after 25 months nothing could find it again"


@pytest.mark.requirement("events.recurring")
def test_more_news_than_a_commit_can_tell_are_told_by_the_next_looks(
    payments: Payments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recurring_news, "EVENTS_MAX", 1)
    months = (6, 7, 8, 9, 10, 11)
    payments.brings(GIRO, *charged("Streambox", 15, *months), *charged("Zeitung", 15, *months, amount="-31.40"))
    assert payments.brings(GIRO, *charged("Fitnesswelt", 15, *months, amount="-45.00")) == ["new"]
    days = [date(2026, 12, 21) + timedelta(days=number) for number in range(4)]
    assert [payments.asked_on(day) for day in days] == [["missed 2026-12-15"]] * 3 + [[]]


@pytest.mark.requirement("events.covered")
def test_who_may_see_the_account_and_its_recurring_payments_hears_of_them(payments: Payments) -> None:
    payments.brings(CARD, booked("2026-11-01", "-1.00", "Kino", "Film"))
    payments.brings(GIRO, *charged("Streambox", 15, 6, 7, 8, 9, 10))
    payments.becomes(date(2026, 11, 21))
    payments.bring(GIRO)
    detect_after_import(payments.eva.services.everybody, [payments.eva.user.id], today=date(2026, 11, 21))
    [missed] = payments.events()
    everybody, giro, card = payments.eva.services.everybody, payments.account(GIRO), payments.account(CARD)
    assert giro is not None
    assert card is not None
    said = {"subscriptionId": missed.subject, "expected": "2026-11-15"}
    assert data_of(everybody, caller(payments), missed) == said
    assert data_of(everybody, caller(payments, giro), missed) == said
    assert data_of(everybody, caller(payments, card), missed) is None
    assert receives(caller(payments), missed.type)
    assert not receives(caller(payments, scopes=frozenset({READ_ACCOUNTS})), missed.type)
    assert not receives(replace(caller(payments), figures_only=True), missed.type)


@pytest.mark.requirement("events.recurring")
def test_what_a_person_adds_is_no_news_to_anybody(payments: Payments) -> None:
    payments.brings(GIRO, *charged("Streambox", 15, 6, 7, 8, 9, 10, 11))
    stated = {"name": "Kita", "every": "month", "next_day": "2026-12-01", "account": "Giro", "is_incoming": False}
    payments.do("subscriptions add", amount="120", **stated)
    payments.do("subscriptions add", amount="125", **stated)
    id_ = payments.eva.lines[-1]
    payments.do("subscriptions list")
    assert payments.eva.lines[-1] == f"{id_}\toutgoing\tgoes on\tmonthly\t125.00 EUR\tconfirmed\tKita"
    assert payments.brings(GIRO, *charged("Kino", 19, 11)) == []
    assert payments.asked_on(date(2026, 12, 7)) == []
    payments.do("subscriptions remove", subscription_id=id_)
    assert payments.brings(CARD) == []
    before = len(payments.eva.lines)
    payments.do("subscriptions list")
    assert len(payments.eva.lines) == before + 1
