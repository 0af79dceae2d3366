"""Banks that tell all bookings of some days, and whose ids change, restart, or name another booking a day later."""

from datetime import date, timedelta
from decimal import Decimal

import pytest
from msgspec.structs import replace

from analytics.records import StatementRecord
from tests.storage.conftest import Bank, bookings, files_of

pytestmark = pytest.mark.requirement("import.complete-windows")


def told(first: str, last: str, balance: str | None = None) -> StatementRecord:
    """A live source's answer for these days, with its balance of the last one."""
    return StatementRecord(
        told_from=date.fromisoformat(first),
        told_until=date.fromisoformat(last),
        closing=Decimal(balance) if balance else None,
        closing_date=date.fromisoformat(last) if balance else None,
    )


NOVEMBER = told("2026-11-01", "2026-11-20")


def sync(bank: Bank, table: str, statement: StatementRecord = NOVEMBER) -> list[str]:
    """What the sync did to bookings, an hour after the one before."""
    bank.now += timedelta(hours=1)
    return sorted(change for _, change in bank.bring(bookings(table), statement=statement).changes.rows())


def ledger(bank: Bank) -> list[tuple[str, str, str]]:
    rows = bank.rows("booking_date, amount, id, counterpart_name")
    return [(f"{row['booking_date']:%m-%d}", f"{row['amount']:.2f}", row["counterpart_name"]) for row in rows]


def gone(bank: Bank) -> set[str]:
    return {row["id"] for row in bank.rows("id, booking_date, amount", "taken_back_transactions")}


def test_a_renewal_that_renames_every_booking_changes_none(bank: Bank) -> None:
    rows = """
        2026-11-02 | -2.80 | Cafe | Kaffee | provider_id=a{0}
        2026-11-02 | -2.80 | Cafe | Kaffee | provider_id=b{0}
        2026-11-03 | -5.00 | Shop | Brot   | provider_id=c{0}
    """
    sync(bank, rows.format(1))
    before = bank.ids()
    assert [sync(bank, rows.format(2)), sync(bank, rows.format(3)), sync(bank, rows.format(1))] == [[], [], []]
    assert bank.ids() == before


@pytest.mark.parametrize("day", ["2026-11-01", "2026-11-20"], ids=["first", "last"])
def test_on_the_edges_of_a_window_equal_words_under_another_id_are_one_booking_and_twins_stay_two(
    bank: Bank, day: str
) -> None:
    coffee = f"{day} | -2.80 | Cafe | Kaffee | provider_id={{}}"
    others = "\n".join(f"2026-11-1{number} | -5.00 | Shop | Brot | provider_id=s{number}" for number in range(3))
    sync(bank, f"{coffee.format(1)}\n{others}")
    assert sync(bank, f"{coffee.format(2)}\n{others}") == []
    assert sync(bank, f"{coffee.format(1)}\n{coffee.format(2)}\n{others}") == ["added"]


def test_ids_that_restart_each_month_name_other_bookings(bank: Bank) -> None:
    october = "2026-10-01 | -900 | Miete | Miete | provider_id=1\n2026-10-05 | -20 | Shop | Brot | provider_id=2"
    sync(bank, october, told("2026-09-01", "2026-10-20"))
    before = bank.ids()
    november = "2026-11-01 | -900 | Miete | Miete | provider_id=1\n2026-11-06 | -33 | Cafe | Torte | provider_id=2"
    assert sync(bank, f"{october}\n{november}", told("2026-09-20", "2026-11-20")) == ["added", "added"]
    assert before < bank.ids()
    assert sync(bank, november, told("2026-10-25", "2026-11-20")) == []
    assert len(bank.ids()) == 4


def test_numbers_of_a_day_that_move_up_for_a_late_row_take_no_id_along(bank: Bank) -> None:
    sync(bank, "2026-11-19 | 2500 | Arbeit AG | Gehalt | provider_id=2026-11-19.0")
    (salary,) = bank.ids()
    later = """
        2026-11-19 | -33  | Shop      | Brot   | provider_id=2026-11-19.0
        2026-11-19 | 2500 | Arbeit AG | Gehalt | provider_id=2026-11-19.1
    """
    assert sync(bank, later) == ["added"]
    assert {row["id"]: row["amount"] for row in bank.rows("id, amount, booking_date")}[salary] == 2500


def test_an_id_with_another_day_and_amount_is_its_row_only_in_the_words_of_one_that_is_gone(bank: Bank) -> None:
    sync(bank, "2026-11-03 | -5 | Shop | Einkauf | provider_id=1\n2026-11-04 | -6 | Cafe | Torte | provider_id=2")
    again = "2026-11-05 | -5.50 | Shop | Einkauf | provider_id=1\n2026-11-06 | -7 | Kino | Karten | provider_id=2"
    assert sync(bank, again) == ["added", "modified"]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("2026-11-03 | -5.00 | Shop | Brot | provider_id=1", "2026-11-03 | -5.50 | Shop | Brot | provider_id=2"),
        ("2026-11-03 | -5.00 | Shop | Brot", "2026-11-03 | -5.50 | Shop | Brot"),
        ("2026-11-03 | -5.00 | Shop | Brot", "2026-11-03 | 0.00 | Shop | Brot"),
        ("2026-11-03 | -5.00 | Shop | Brot", "2026-11-05 | -5.00 | Shop | Brot"),
        ("2026-11-03 | -5.00 | Shop | Brot", "2026-11-03 | -5.00 | Markt | Einkauf"),
        ("2026-11-20 | -5.00 | Shop | Brot", "2026-11-20 | -5.00 | Markt | Einkauf"),
        ("2026-11-03 | -5.00 | Shop | Brot | provider_id=1", "2026-11-04 | -5.00 | Kino | Film | provider_id=1"),
    ],
    ids=[
        "amount",
        "amount without an id",
        "amount of nothing",
        "day",
        "words",
        "words today",
        "day and words under an id",
    ],
)
@pytest.mark.sampled
def test_what_is_told_otherwise_in_a_window_changes_the_row_and_keeps_its_id(bank: Bank, first: str, then: str) -> None:
    sync(bank, f"{first}\n2026-11-10 | -1.00 | Kiosk | Zeitung")
    before = bank.ids()
    assert sync(bank, f"{then}\n2026-11-10 | -1.00 | Kiosk | Zeitung") == ["modified"]
    assert bank.ids() == before
    (row,) = [each for each in bank.rows() if each["amount"] != -1]
    (expected,) = bookings(then)
    assert (row["booking_date"], row["amount"], row["counterpart_name"], row["purpose"]) == (
        expected.booking_date,
        expected.amount,
        expected.counterpart_name,
        expected.purpose,
    )
    assert sync(bank, f"{then}\n2026-11-10 | -1.00 | Kiosk | Zeitung") == []


def test_a_corrected_amount_finds_the_row_whose_words_a_file_had_cut(bank: Bank) -> None:
    files = files_of(bank)
    files.bring(bookings("2026-11-03 | -26.49 | Jörg Übermut Maschinenbau A | 4733974143 Beleg vom 03.11."))
    before = bank.ids()
    whole = "2026-11-03 | -26.86 | Jörg Übermut Maschinenbau AG | 4733974143 Beleg vom 03.11.2026"
    assert sync(bank, whole) == ["modified"]
    assert bank.ids() == before


@pytest.mark.parametrize(
    "other",
    ["2026-11-09 | -5.00 | Kino | Film | provider_id=1", "2026-11-03 | -7.00 | Kino | Film | provider_id=1"],
    ids=["of its amount", "of its day"],
)
def test_a_corrected_amount_finds_its_row_although_another_booking_has_the_id_now(bank: Bank, other: str) -> None:
    sync(bank, "2026-11-03 | -5.00 | Shop | Brot | provider_id=1")
    before = bank.ids()
    assert sync(bank, f"2026-11-03 | -5.50 | Shop | Brot | provider_id=2\n{other}") == ["added", "modified"]
    kept = [row for row in bank.rows() if row["id"] in before]
    assert [(row["amount"], row["counterpart_name"]) for row in kept] == [(Decimal("-5.50"), "Shop")]


@pytest.mark.parametrize("are_turned", [False, True])
@pytest.mark.parametrize("corrected_too", [False, True])
def test_of_two_bookings_whose_words_begin_alike_each_correction_finds_its_own(
    bank: Bank, are_turned: bool, corrected_too: bool
) -> None:
    short, long = "2026-11-03 | {} | Wohnbau | Miete 11/2026", "2026-11-03 | {} | Wohnbau | Miete 11/2026 Nebenkosten"
    sync(
        bank,
        f"{long.format(-100)}\n{short.format(-900)}" if are_turned else f"{short.format(-900)}\n{long.format(-100)}",
    )
    before = {row["purpose"]: row["id"] for row in bank.rows("purpose, id, booking_date, amount")}
    then = [long.format(-110), short.format(-910 if corrected_too else -900)]
    assert sync(bank, "\n".join(reversed(then) if are_turned else then)) == ["modified"] * (1 + corrected_too)
    assert {row["purpose"]: row["id"] for row in bank.rows("purpose, id, booking_date, amount")} == before


def test_words_without_a_letter_are_nothing_in_common(bank: Bank) -> None:
    sync(bank, "2026-11-03 | -5.00 | | -\n2026-11-10 | -1.00 | Kiosk | Zeitung")
    assert sync(bank, "2026-11-03 | -80.00 | Kino | *\n2026-11-10 | -1.00 | Kiosk | Zeitung") == ["added"]


def test_what_a_file_had_cut_is_not_the_other_booking_that_begins_with_the_same_characters(bank: Bank) -> None:
    kiosk = "2026-11-10 | -1.00 | Kiosk | Zeitung"
    sync(bank, f"2026-11-03 | -30.00 | | Lastschrift Strom Haus 1\n{kiosk}")
    assert sync(bank, f"2026-11-03 | -31.00 | | Lastschrift Strom Haus 2\n{kiosk}") == ["added"]


def test_a_row_in_other_words_of_a_day_that_goes_on_may_be_another_one_if_a_file_has_told_it(bank: Bank) -> None:
    files_of(bank).bring(bookings("2026-11-20 | -5.00 | Shop | Brot"))
    assert sync(bank, "2026-11-20 | -5.00 | Kino | Film") == ["added"]
    assert len(sync(bank, "2026-11-20 | -5.00 | Kino | Film\n2026-11-20 | -5.00 | Shop | Brot")) == 0


BEFORE = "2026-11-03 | -5.00 | Shop | Brot\n2026-11-04 | -7.00 | Cafe | Torte\n2026-11-05 | -9.00 | Kino | Film"


def test_what_the_bank_takes_back_leaves_the_ledger_and_comes_back_under_its_id(bank: Bank) -> None:
    sync(bank, BEFORE, told("2026-11-01", "2026-11-20", "100"))
    ids = bank.ids()
    rest = BEFORE.splitlines()[0] + "\n" + BEFORE.splitlines()[2] + "\n2026-11-19 | -1.00 | Kiosk | Zeitung"
    assert sync(bank, rest, told("2026-11-01", "2026-11-20", "106")) == ["added", "removed"]
    assert ("11-04", "-7.00", "Cafe") not in ledger(bank)
    assert gone(bank) == ids - bank.ids()
    journal = bank.database.rows("SELECT transaction_id, change FROM journal WHERE change = 'removed'")
    assert {row["transaction_id"] for row in journal} == gone(bank)
    both = rest + "\n2026-11-04 | -7.00 | Cafe | Torte"
    assert sync(bank, both, told("2026-11-01", "2026-11-20", "99")) == ["added"]
    assert ids < bank.ids()
    assert gone(bank) == set()


def test_an_id_that_was_taken_back_names_another_booking_on_another_day(bank: Bank) -> None:
    rest = "2026-11-10 | -1.00 | Kiosk | Zeitung | provider_id=2"
    sync(bank, f"2026-11-03 | -5.00 | Shop | Brot | provider_id=1\n{rest}", told("2026-11-01", "2026-11-20", "100"))
    sync(bank, rest, told("2026-11-01", "2026-11-20", "105"))
    (shop,) = gone(bank)
    again = f"{rest}\n2026-11-15 | -5.00 | Kino | Film | provider_id=1"
    assert sync(bank, again, told("2026-11-01", "2026-11-20", "100")) == ["added"]
    assert gone(bank) == {shop}


@pytest.mark.parametrize(
    ("balance", "left"),
    [("112", "Kino"), ("105", "Cafe Kino"), ("107", "Kino Shop"), ("100", "Cafe Kino Shop"), ("101", "Cafe Kino Shop")],
    ids=["both", "the one", "the other", "none", "neither explains it"],
)
def test_only_what_the_balance_proves_is_taken_back(bank: Bank, balance: str, left: str) -> None:
    sync(bank, BEFORE, told("2026-11-01", "2026-11-20", "100"))
    sync(bank, "2026-11-05 | -9.00 | Kino | Film", told("2026-11-01", "2026-11-20", balance))
    assert sorted(name for _, _, name in ledger(bank)) == left.split()


def test_without_a_balance_nothing_is_taken_back(bank: Bank) -> None:
    sync(bank, BEFORE, told("2026-11-01", "2026-11-20", "100"))
    assert sync(bank, "2026-11-05 | -9.00 | Kino | Film") == []
    assert sync(bank, "2026-11-05 | -9.00 | Kino | Film", told("2026-11-04", "2026-11-20", "107")) == []


def test_a_sync_made_while_the_clock_was_ahead_is_not_taken_for_the_last_one(bank: Bank) -> None:
    bread, cake = BEFORE.splitlines()[:2]
    refund = "2026-11-05 | 14.00 | Kino | Refund"
    bank.now += timedelta(days=3)
    sync(bank, bread, told("2026-11-01", "2026-11-20", "100"))
    bank.now -= timedelta(days=3)
    sync(bank, f"{bread}\n{cake}\n{refund}", told("2026-11-01", "2026-11-20", "107"))
    assert sync(bank, f"{bread}\n{refund}", told("2026-11-01", "2026-11-20", "107")) == []
    assert bank.database.rows("SELECT balance FROM accounts") == [{"balance": 107}]


def test_a_late_booking_that_the_balance_had_in_it_already_proves_nothing_against_others(bank: Bank) -> None:
    sync(bank, BEFORE, told("2026-11-01", "2026-11-10", "100"))
    late = BEFORE.replace("2026-11-04 | -7.00 | Cafe | Torte", "2026-11-08 | -3.00 | Kiosk | Zeitung")
    assert sync(bank, late, told("2026-11-01", "2026-11-20", "107")) == ["added", "removed"]
    assert ("11-04", "-7.00", "Cafe") not in ledger(bank)


@pytest.mark.parametrize(("rest", "left"), [("", "Kino Kiosk Shop"), ("Kino", "Cafe Kino Kiosk Shop")])
def test_a_late_booking_of_the_very_amount_of_all_that_is_gone_has_taken_its_place(
    bank: Bank, rest: str, left: str
) -> None:
    sync(bank, BEFORE, told("2026-11-01", "2026-11-20", "100"))
    otherwise = BEFORE.replace("2026-11-04 | -7.00 | Cafe | Torte", "2026-11-03 | -7.00 | Kiosk | Zeitung")
    kept = [line for line in otherwise.splitlines() if not rest or rest not in line]
    sync(bank, "\n".join(kept), told("2026-11-01", "2026-11-20", "100"))
    assert sorted(name for _, _, name in ledger(bank)) == left.split()


def test_a_statement_that_adds_up_ends_what_another_file_told_of_its_days(bank: Bank) -> None:
    files = files_of(bank)
    files.bring(bookings("2026-11-03 | -11.00 | Sammler | Sammellastschrift"))
    whole = StatementRecord(
        opening=Decimal(100),
        opening_date=date(2026, 10, 31),
        closing=Decimal(89),
        closing_date=date(2026, 11, 5),
        is_authoritative=True,
    )
    files.bring(bookings("2026-11-03 | -5.00 | Anna | Beitrag\n2026-11-03 | -6.00 | Bert | Beitrag"), statement=whole)
    assert ledger(bank) == [("11-03", "-6.00", "Bert"), ("11-03", "-5.00", "Anna")]
    assert len(gone(bank)) == 1


def test_of_two_alike_of_which_a_statement_proves_one_the_older_id_stays(bank: Bank) -> None:
    bank.bring(bookings("2026-11-03 | -5.00 | Shop | Brot | provider_id=long"))
    before = bank.ids()
    bank.now += timedelta(hours=1)
    assert bank.bring(bookings("2026-11-03 | -5.00 | Shop | Brot | provider_id=2")).new_transactions == 1
    proof = StatementRecord(
        opening=Decimal(100),
        opening_date=date(2026, 10, 31),
        closing=Decimal(95),
        closing_date=date(2026, 11, 5),
        is_authoritative=True,
    )
    files_of(bank).bring(bookings("2026-11-03 | -5.00 | Shop | Brot"), statement=proof)
    assert bank.ids() == before


@pytest.mark.parametrize("is_in_one_answer", [True, False])
@pytest.mark.parametrize("was", ["pending", "taken back"])
def test_an_id_that_another_booking_has_left_behind_makes_no_id_of_ours_twice(
    bank: Bank, was: str, is_in_one_answer: bool
) -> None:
    coffee, bread = (
        "2026-11-03 | -2.80 | Cafe | Kaffee | provider_id={}",
        "2026-11-03 | -5.00 | Shop | Brot | provider_id=1",
    )
    if was == "pending":
        bank.bring([replace(each, status="pending") for each in bookings(coffee.format(1))])
    else:
        kiosk = "2026-11-03 | -1.00 | Kiosk | Zeitung"
        sync(bank, f"{coffee.format(1)}\n{kiosk}", told("2026-11-01", "2026-11-20", "100"))
        sync(bank, kiosk, told("2026-11-01", "2026-11-20", "102.80"))
    (kept,) = gone(bank) or {row["id"] for row in bank.rows("id, booking_date, amount", "pending_transactions")}
    for answer in [f"{coffee.format(2)}\n{bread}"] if is_in_one_answer else [coffee.format(2), bread]:
        bank.bring(bookings(answer))
    assert {row["id"]: row["amount"] for row in bank.rows("id, amount, booking_date")}[kept] == Decimal("-2.80")
    assert len(bank.ids()) == len(ledger(bank))
    bank.bring(bookings("2026-11-03 | -2.90 | Cafe | Kaffee | provider_id=2"))
    assert {row["id"]: row["amount"] for row in bank.rows("id, amount, booking_date")}[kept] == Decimal("-2.90")


def test_an_empty_answer_takes_nothing_back(bank: Bank) -> None:
    sync(bank, BEFORE)
    assert sync(bank, "") == []
    assert len(bank.ids()) == 3


def test_very_many_different_bookings_of_one_day_and_amount_are_found_by_what_they_share(bank: Bank) -> None:
    names = [f"Shop {chr(97 + number // 11)}{chr(97 + number % 11)} Nord" for number in range(101)]
    files = files_of(bank)
    files.bring([row for name in names for row in bookings(f"2026-11-03 | -5.00 | {name} | Einkauf {name}")])
    again = [row for name in names for row in bookings(f"2026-11-03 | -5.00 | {name.upper()} | Einkauf")]
    assert files.bring(again).new_transactions == 0
