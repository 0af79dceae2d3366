"""Stored recurring payments are read only for the very accounts and data they were computed from, and while no booking
comes due."""

from datetime import date, timedelta

import pytest

from handlers.work.sync import detection
from storage import accounts, detections
from storage.database import state_in
from storage.detections import Detected
from tests.storage.conftest import Bank, bookings

TODAY = date(2026, 11, 20)
MONTHLY = "\n".join(f"2026-{month:02}-15 | -9.99 | Streamer | Abo" for month in range(5, 12))


def found(bank: Bank, today: date) -> list[tuple[str, date, int]]:
    """Name, last charge and count of what the service answers on a day."""
    selected = accounts.everything(bank.database, bank.user.id)
    answer = detection.recurring_of(bank.database, bank.user.id, selected, today=today)
    return [
        (each.merchant_name, each.last_charged, each.occurrences(today)) for each in answer if each.is_current(today)
    ]


@pytest.mark.requirement("subscriptions.stored")
def test_detection_after_an_import_is_what_the_request_reads(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    bank.bring(bookings(MONTHLY))
    detection.detect_after_import(bank.database, [bank.user.id], today=TODAY)
    monkeypatch.setattr(detection, "detect_both", lambda *_: pytest.fail("the stored answer was not used"))
    assert [(day, count) for _, day, count in found(bank, TODAY)] == [(date(2026, 11, 15), 6)]


@pytest.mark.requirement("subscriptions.new-day")
def test_a_day_changes_only_what_is_counted_when_it_is_read(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    bank.bring(bookings(MONTHLY))
    detection.detect_after_import(bank.database, [bank.user.id], today=TODAY)
    monkeypatch.setattr(detection, "detect_both", lambda *_: pytest.fail("the stored answer was not used"))
    assert found(bank, date(2026, 11, 30)) == [("Streamer", date(2026, 11, 15), 6)]
    assert found(bank, date(2026, 12, 16)) == [("Streamer", date(2026, 11, 15), 5)]  # June's is past


@pytest.mark.requirement("subscriptions.never-stale")
@pytest.mark.parametrize("clock", [date(2026, 12, 15), TODAY - timedelta(days=1)])
def test_a_booking_that_comes_due_and_a_clock_set_back_make_the_stored_answer_past(bank: Bank, clock: date) -> None:
    bank.bring(bookings(f"{MONTHLY}\n2026-12-15 | -9.99 | Streamer | Abo"))
    ids = ["payments", *(account.id for account in accounts.of_user(bank.database, bank.user.id))]
    detection.detect_after_import(bank.database, [bank.user.id], today=TODAY)
    assert detections.find(bank.database, bank.user.id, ids, day=date(2026, 12, 14))[1] is not None
    assert detections.find(bank.database, bank.user.id, ids, day=clock)[1] is None
    assert found(bank, clock)[0][1] == (date(2026, 12, 15) if clock > TODAY else date(2026, 11, 15))


@pytest.mark.requirement("subscriptions.never-stale")
def test_an_import_in_between_makes_the_stored_answer_past(bank: Bank) -> None:
    bank.bring(bookings(MONTHLY.rsplit("\n", 1)[0]))
    assert found(bank, TODAY)[0][1] == date(2026, 10, 15)
    bank.bring(bookings(MONTHLY))
    assert found(bank, TODAY)[0][1] == date(2026, 11, 15)


@pytest.mark.requirement("cache.two_counters")
def test_a_change_that_no_figure_counts_leaves_the_stored_answer(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    bank.bring(bookings(MONTHLY))
    detection.detect_after_import(bank.database, [bank.user.id], today=TODAY)
    before = state_in(bank.database, bank.user.id)
    bank.database.changes(bank.user.id)  # as a note does
    assert state_in(bank.database, bank.user.id) > before
    monkeypatch.setattr(detection, "detect_both", lambda *_: pytest.fail("the stored answer was not used"))
    assert len(found(bank, TODAY)) == 1


@pytest.mark.requirement("subscriptions.never-stale")
def test_midnight_makes_the_stored_answer_past(bank: Bank) -> None:
    bank.bring(bookings(MONTHLY))
    last = date(2027, 1, 16)  # two months and a day after the last charge (decision 21)
    assert len(found(bank, TODAY)) == 1
    assert len(found(bank, last)) == 1
    assert found(bank, last + timedelta(days=1)) == []
    assert len(found(bank, TODAY)) == 1


@pytest.mark.requirement("subscriptions.never-stale")
def test_an_import_that_overtakes_a_detection_leaves_nothing_old_behind(bank: Bank) -> None:
    bank.bring(bookings(MONTHLY.rsplit("\n", 1)[0]))
    ids = ["payments", *(account.id for account in accounts.of_user(bank.database, bank.user.id))]
    version, _ = detections.find(bank.database, bank.user.id, ids, day=TODAY)
    bank.bring(bookings(MONTHLY))
    now_version, answer = detections.find(bank.database, bank.user.id, ids, day=TODAY)
    assert now_version > version
    assert answer is None
    late = Detected("[]", TODAY, TODAY)  # what a slow request computed from the rows before
    detections.keep(bank.database, bank.user.id, ids, data_version=version, found=late)
    assert len(found(bank, TODAY)) == 1


@pytest.mark.requirement("subscriptions.stored")
def test_a_stored_answer_is_the_same_as_the_computed_one(bank: Bank) -> None:
    bank.bring(bookings(MONTHLY))
    selected = accounts.everything(bank.database, bank.user.id)
    computed = detection.recurring_of(bank.database, bank.user.id, selected, today=TODAY)
    assert detection.recurring_of(bank.database, bank.user.id, selected, today=TODAY) == computed != []
