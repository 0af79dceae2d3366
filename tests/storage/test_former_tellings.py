"""A booking that has been corrected or taken back, told by an older file as it was before: it is there once."""

import json
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import pytest

from analytics.records import StatementRecord
from storage.database import Row
from storage.importing import contributions
from storage.importing.matching.booking_keys import FORMER
from storage.importing.matching.stored_bookings import FORMER_MAX
from tests.storage.conftest import Bank, NewBank, bookings, files_of
from tests.storage.test_complete_windows import gone, ledger, sync, told
from tests.storage.test_repeated_syncs import anew

pytestmark = pytest.mark.requirement("import.former-tellings")

KIOSK = "2026-11-10 | -1.00 | Kiosk | Zeitung"
WAS = "2026-11-05 | -20.00 | Shop | Brot"
MOVED = "2026-11-06 | -20.00 | Shop | Brot"
HAS_IDS = pytest.mark.parametrize("id_", [" | provider_id=1", ""], ids=["ids", "no ids"])


@HAS_IDS
@pytest.mark.parametrize(
    "corrected",
    [MOVED, "2026-11-05 | -20.50 | Shop | Brot", "2026-11-05 | -20.00 | Markt am Tor | Einkauf"],
    ids=["day", "amount", "words"],
)
@pytest.mark.parametrize("file", [f"{WAS}\n{KIOSK}", WAS, "2026-11-05 | -20.00 | SHOP |"], ids=["all", "one", "cut"])
@pytest.mark.sampled
def test_a_file_from_before_a_correction_adds_nothing(bank: Bank, id_: str, corrected: str, file: str) -> None:
    sync(bank, f"{WAS}{id_}\n{KIOSK}")
    assert sync(bank, f"{corrected}{id_}\n{KIOSK}") == ["modified"]
    now = ledger(bank)
    assert files_of(bank).bring(bookings(file)).changes.rows() == []
    assert ledger(bank) == now


@HAS_IDS
@pytest.mark.parametrize("file", [WAS, MOVED], ids=["as at first", "as then"])
def test_each_wording_of_a_booking_that_was_corrected_twice_is_known(bank: Bank, id_: str, file: str) -> None:
    for table in (WAS, MOVED, MOVED.replace("-20.00", "-21.00")):
        sync(bank, f"{table}{id_}\n{KIOSK}")
    files_of(bank).bring(bookings(file))
    assert ledger(bank) == [("11-06", "-21.00", "Shop"), ("11-10", "-1.00", "Kiosk")]


@HAS_IDS
def test_a_correction_that_the_bank_reverts_leaves_one_booking_for_a_file_of_the_days_between(
    bank: Bank, id_: str
) -> None:
    for table in (WAS, MOVED, WAS):
        sync(bank, f"{table}{id_}\n{KIOSK}")
    files_of(bank).bring(bookings(MOVED))
    assert ledger(bank) == [("11-05", "-20.00", "Shop"), ("11-10", "-1.00", "Kiosk")]


@HAS_IDS
@pytest.mark.parametrize(
    ("file", "days"),
    [(f"{WAS}\n{MOVED}", ["11-05", "11-06"]), (f"{WAS}\n{WAS}", ["11-05", "11-06"]), (f"{WAS}\n" * 3, 2)],
    ids=["both", "two as before", "three as before"],
)
def test_a_booking_of_the_former_day_is_another_one_where_more_are_told(
    bank: Bank, id_: str, file: str, days: list[str] | int
) -> None:
    sync(bank, f"{WAS}{id_}\n{KIOSK}")
    sync(bank, f"{MOVED}{id_}\n{KIOSK}")
    files_of(bank).bring(bookings(file))
    found = [day for day, _, name in ledger(bank) if name == "Shop"]
    assert found == (days if isinstance(days, list) else ["11-05"] * days + ["11-06"])


@pytest.mark.parametrize("other", [" | provider_id=2", ""], ids=["ids", "no ids"])
def test_the_source_that_corrected_a_booking_tells_another_one_in_its_former_words(bank: Bank, other: str) -> None:
    own = other.replace("2", "1")
    sync(bank, f"{WAS}{own}\n{KIOSK}")
    sync(bank, f"{MOVED}{own}\n{KIOSK}")
    files_of(bank).bring(bookings(WAS))
    assert sync(bank, f"{WAS}{other}\n{MOVED}{own}\n{KIOSK}") == ["added"]
    assert sync(bank, f"{WAS}{other}\n{MOVED}{own}\n{KIOSK}") == []


def test_a_bank_that_lags_behind_moves_nothing_back(bank: Bank, new_bank: NewBank) -> None:
    sync(bank, f"{WAS}\n{KIOSK}")
    sync(bank, f"{MOVED}\n{KIOSK}")
    other = new_bank("eva", "Other")
    for lagging in (f"{WAS}\n{KIOSK}", f"{WAS}\n{KIOSK}", f"{MOVED}\n{KIOSK}"):
        assert sync(other, lagging) == []
    assert sync(bank, f"{MOVED}\n{KIOSK}") == []


@pytest.mark.parametrize("is_live", [True, False], ids=["live", "a file"])
def test_what_a_statement_has_corrected_is_told_as_before_by_others(bank: Bank, is_live: bool) -> None:
    files = files_of(bank)
    files.bring(bookings(f"{WAS}\n{KIOSK}"))
    proven = StatementRecord(
        opening=Decimal(100),
        opening_date=date(2026, 10, 31),
        closing=Decimal(79),
        closing_date=date(2026, 11, 15),
        is_authoritative=True,
    )
    files.bring(bookings(f"{MOVED}\n{KIOSK}"), statement=proven)
    assert sync(bank if is_live else replace(files, count=200), f"{WAS}\n{KIOSK}") == []
    assert ledger(bank) == [("11-06", "-20.00", "Shop"), ("11-10", "-1.00", "Kiosk")]


@HAS_IDS
def test_what_was_pending_and_booked_on_another_day_is_told_by_a_file_as_booked_on_the_first(
    bank: Bank, id_: str
) -> None:
    sync(bank, f"{WAS}{id_ or ' | '};status=pending\n{KIOSK}")
    sync(bank, f"{MOVED}{id_}\n{KIOSK}")
    files_of(bank).bring(bookings(WAS))
    assert ledger(bank) == [("11-06", "-20.00", "Shop"), ("11-10", "-1.00", "Kiosk")]


@HAS_IDS
@pytest.mark.parametrize(("last_day", "stays"), [("2026-11-10", True), ("2026-11-21", False)], ids=["older", "younger"])
def test_what_a_bank_took_back_comes_back_by_a_file_that_may_know_of_it_alone(
    bank: Bank, id_: str, last_day: str, stays: bool
) -> None:
    sync(bank, f"{WAS}{id_}\n{KIOSK}", told("2026-11-01", "2026-11-20", "100"))
    assert sync(bank, KIOSK, told("2026-11-01", "2026-11-20", "120")) == ["removed"]
    taken_back = gone(bank)
    files_of(bank).bring(bookings(f"{WAS}\n{last_day} | -1.00 | Kiosk | Zeitung"))
    assert gone(bank) == (taken_back if stays else set())


def test_what_a_bank_took_back_stays_so_in_the_other_words_of_an_older_file(bank: Bank) -> None:
    sync(bank, f"2026-11-06 | -20.00 | Shop | Schuhe Winter\n{KIOSK}", told("2026-11-01", "2026-11-20", "100"))
    assert sync(bank, KIOSK, told("2026-11-01", "2026-11-20", "120")) == ["removed"]
    files_of(bank).bring(bookings(f"2026-11-06 | -20.00 | SHOP | Schuhe\n{KIOSK}"))
    assert ledger(bank) == [("11-10", "-1.00", "Kiosk")]


def test_undo_forgets_and_restores_what_a_booking_was(bank: Bank) -> None:
    def undone(job: str) -> list[Row]:
        user_id = bank.user.id
        bank.database.atomically(
            lambda session: contributions.forget(session, user_id, contributions.of_job(session, user_id, job))
        )
        anew(bank)
        return rows()

    def rows() -> list[Row]:
        return [{**row, "changed_state": None} for row in bank.rows()]

    sync(bank, f"{WAS}\n{KIOSK}")
    at_first = rows()
    sync(bank, f"{MOVED}\n{KIOSK}")
    corrected = rows()
    files_of(bank).bring(bookings(WAS))
    assert undone("job-101") == corrected
    assert undone("job-2") == at_first


def test_of_a_booking_that_is_corrected_all_the_time_the_last_wordings_are_kept(bank: Bank) -> None:
    for cents in range(FORMER_MAX + 3):
        sync(bank, f"{WAS.replace('.00', f'.{cents:02}')}\n{KIOSK}")
        bank.now += timedelta(hours=1)
    (claims,) = [json.loads(row["claims"]) for row in bank.rows() if row["counterpart_name"] == "Shop"]
    kept = [Decimal(json.loads(claims[key])["amount"]) for key in sorted(claims) if key.startswith(FORMER)]
    assert kept == [Decimal(f"-20.{cents:02}") for cents in range(2, FORMER_MAX + 2)]


def test_an_id_of_the_bank_that_looks_like_the_key_of_a_wording_is_an_id(bank: Bank) -> None:
    files_of(bank).bring(bookings(f"{WAS}\n{KIOSK}"))
    sync(bank, f"{WAS} | provider_id=was:1\n{KIOSK}")
    files_of(bank).bring(bookings(WAS.replace("-20.00", "-7.00")))
    assert ledger(bank) == [("11-05", "-20.00", "Shop"), ("11-05", "-7.00", "Shop"), ("11-10", "-1.00", "Kiosk")]
