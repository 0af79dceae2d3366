"""Stored recurring payments are read only for the very accounts, data and day they were computed from."""

from datetime import date, timedelta

import polars as pl
import pytest

from analytics.frames import SUBSCRIPTIONS
from handlers.work.sync import detection
from storage import accounts, detections
from storage.database import state_in
from tests.storage.conftest import Bank, bookings

TODAY = date(2026, 11, 20)
MONTHLY = "\n".join(f"2026-{month:02}-15 | -9.99 | Streamer | Abo" for month in range(5, 12))


def found(bank: Bank, today: date) -> list[tuple[str, date, int]]:
    """Name, last charge and count of what the service answers on a day."""
    selected = accounts.everything(bank.database, bank.user.id)
    answer = detection.subscriptions_of(bank.database, bank.user.id, selected, today=today)
    return [(row["merchant_name"], row["last_charged"], row["occurrences"]) for row in answer.iter_rows(named=True)]


@pytest.mark.requirement("subscriptions.stored")
def test_detection_after_an_import_is_what_the_request_reads(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    bank.bring(bookings(MONTHLY))
    detection.detect_after_import(bank.database, [bank.user.id], today=TODAY)
    monkeypatch.setattr(detection, "detect_both", lambda *_: pytest.fail("the stored answer was not used"))
    assert [(day, count) for _, day, count in found(bank, TODAY)] == [(date(2026, 11, 15), 6)]


@pytest.mark.requirement("subscriptions.new-day")
def test_what_a_new_day_brings_is_there_before_somebody_asks(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    bank.bring(bookings(MONTHLY))
    tomorrow = TODAY + timedelta(days=1)
    detection.detect_for_new_day(bank.database, [bank.user.id], today=tomorrow, is_over=lambda: True)
    ids = ["recurring", *(account.id for account in accounts.of_user(bank.database, bank.user.id))]
    assert detections.find(bank.database, bank.user.id, ids, day=tomorrow)[1] is None
    detection.detect_for_new_day(bank.database, [bank.user.id], today=tomorrow, is_over=lambda: False)
    monkeypatch.setattr(detection, "detect_both", lambda *_: pytest.fail("the stored answer was not used"))
    assert [(day, count) for _, day, count in found(bank, tomorrow)] == [(date(2026, 11, 15), 6)]


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
    ids = ["recurring", *(account.id for account in accounts.of_user(bank.database, bank.user.id))]
    version, _ = detections.find(bank.database, bank.user.id, ids, day=TODAY)
    bank.bring(bookings(MONTHLY))
    now_version, answer = detections.find(bank.database, bank.user.id, ids, day=TODAY)
    assert now_version > version
    assert answer is None
    late = pl.DataFrame(schema=SUBSCRIPTIONS)  # what a slow request computed from the rows before
    detections.keep(bank.database, bank.user.id, ids, data_version=version, day=TODAY, found=late)
    assert len(found(bank, TODAY)) == 1


@pytest.mark.requirement("subscriptions.stored")
def test_a_stored_answer_is_the_same_frame_as_the_computed_one(bank: Bank) -> None:
    bank.bring(bookings(MONTHLY))
    selected = accounts.everything(bank.database, bank.user.id)
    computed = detection.subscriptions_of(bank.database, bank.user.id, selected, today=TODAY)
    stored = detection.subscriptions_of(bank.database, bank.user.id, selected, today=TODAY)
    assert stored.equals(computed)
    assert stored.schema == computed.schema
