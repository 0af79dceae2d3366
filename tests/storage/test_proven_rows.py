"""What balances prove of rows: two statements of one day have as many bookings in common as their balances leave room
for, whatever words and references say."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import count, permutations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from analytics.records import StatementRecord, TransactionRecord
from analytics.statements.chain import Links
from storage.database import Transaction
from storage.importing import contributions
from storage.undo_and_merge import rebuild
from tests.conftest import NOW, empty_store, examples
from tests.engines import OpenStore
from tests.storage.conftest import Bank, bookings, files_of, make_bank

pytestmark = pytest.mark.requirement("import.proven-rows")
DAY = date(2026, 11, 2)
COFFEE = "2026-11-02 | -10.00 | Kiosk | Kaffee | references={}"


def coffees(*references: str) -> list[TransactionRecord]:
    """One equal booking for each reference; an empty one stands for none."""
    return [row for each in references for row in bookings(COFFEE.format(each) if each else COFFEE.rpartition("|")[0])]


def stated(opening: int, closing: int, sequence: str | None = None, days: tuple[int, int] = (2, 2)) -> StatementRecord:
    return StatementRecord(
        opening=Decimal(opening),
        opening_date=DAY.replace(day=days[0]),
        closing=Decimal(closing),
        closing_date=DAY.replace(day=days[1]),
        sequence=sequence,
        is_authoritative=True,
    )


@pytest.fixture
def files(bank: Bank) -> Bank:
    return files_of(bank)


def account(files: Bank) -> tuple[int, str]:
    """The number of bookings, and the balance."""
    (row,) = files.rows("balance, id, id AS booking_date, id AS amount", "accounts")
    return len(files.ids()), f"{row['balance']:.2f}"


MORNING, EVENING, NIGHT = (("s:1", "s:2"), 100, 80), (("s:3", "s:4"), 80, 60), (("s:5", "s:6"), 60, 40)
Told = tuple[Sequence[str], int, int]


def bring(files: Bank, told: Told, sequence: str | None = None) -> int:
    references, opening, closing = told
    return files.bring(coffees(*references), statement=stated(opening, closing, sequence)).new_transactions


@pytest.mark.parametrize("are_named", [True, False])
@pytest.mark.parametrize("order", [*permutations([MORNING, EVENING])])
def test_a_second_statement_of_a_day_that_opens_where_the_first_closes_has_bookings_of_its_own(
    files: Bank, order: Sequence[Told], are_named: bool
) -> None:
    told = [(each[0] if are_named else ("", ""), *each[1:]) for each in order]
    assert [bring(files, each) for each in (*told, *told)] == [2, 2, 0, 0]
    assert account(files) == (4, "60.00")


@pytest.mark.parametrize("order", [*permutations([MORNING, EVENING, NIGHT])])
@pytest.mark.sampled
def test_statements_of_a_day_with_numbers_of_their_own_are_apart_before_the_one_between_them_comes(
    files: Bank, order: Sequence[Told]
) -> None:
    assert [bring(files, each, str(each[1])) for each in order] == [2, 2, 2]
    assert account(files) == (6, "40.00")


@pytest.mark.parametrize("are_named", [True, False])
@pytest.mark.parametrize("order", [*permutations([MORNING, EVENING, NIGHT])])
@pytest.mark.sampled
def test_statements_of_a_day_without_numbers_are_apart_in_any_order(
    files: Bank, order: Sequence[Told], are_named: bool
) -> None:
    told = [(each[0] if are_named else ("", ""), *each[1:]) for each in order]
    assert [bring(files, each) for each in (*told, *told)] == [2, 2, 2, 0, 0, 0]
    assert account(files) == (6, "40.00")


WHOLE = ((*MORNING[0], *EVENING[0]), 100, 60)


@pytest.mark.parametrize("order", [*permutations([MORNING, EVENING, WHOLE])])
def test_a_statement_of_the_whole_day_has_the_bookings_of_both_halves(files: Bank, order: Sequence[Told]) -> None:
    for each in order:
        bring(files, each)
    assert account(files) == (4, "60.00")


@pytest.mark.parametrize("are_named", [True, False])
@pytest.mark.parametrize("order", [*permutations([("1234", 100, 60), ("345", 80, 50), ("56", 60, 40)])])
@pytest.mark.sampled
def test_of_equal_bookings_of_a_day_those_are_in_two_statements_for_which_their_balances_leave_room(
    files: Bank, order: Sequence[tuple[str, int, int]], are_named: bool
) -> None:
    for _ in range(2):
        for places, opening, closing in order:
            bring(files, ([f"s:{place}" if are_named else "" for place in places], opening, closing))
    assert account(files) == (6, "40.00")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_statements_that_overlap_by_two_bookings_no_others_are_taken_for_one(
    files: Bank, order: Sequence[int]
) -> None:
    rows = [
        bookings(f"2026-11-02 | {amount}.00 | Kiosk | {purpose} | references=s:{place}")
        for place, (amount, purpose) in enumerate(
            [(-10, "Tee"), (-20, "Kaffee"), (-20, "Tee"), (-10, "Kaffee"), (-10, "Kaffee"), (-20, "Tee")]
        )
    ]
    told = [(rows[:5], 1000, 930), (rows[3:], 950, 910)]
    for place in (*order, *order):
        of_statement, opening, closing = told[place]
        files.bring([row for each in of_statement for row in each], statement=stated(opening, closing))
    assert account(files) == (6, "910.00")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_issues_that_say_when_the_bank_wrote_them_the_newer_counts_in_whatever_order_they_come(
    files: Bank, order: Sequence[int]
) -> None:
    told = ["3 4 6", "3 5"]  # the newer one lacks a booking of its last day, and one has another day
    amounts = {3: -3, 4: -4, 5: -4, 6: -6}
    for place in order:
        days = [int(day) for day in told[place].split()]
        rows = [
            row for day in days for row in bookings(f"2026-11-0{day} | {amounts[day]}.00 | Shop | Einkauf {day // 6}")
        ]
        statement = stated(100, 100 + sum(amounts[day] for day in days), "1", (2, 6))
        files.bring(rows, statement=replace(statement, issued_at=f"2026-12-0{place + 1}T08:00:00"))
        files.now += timedelta(minutes=1)
    assert " ".join(f"{row['booking_date'].day}" for row in files.rows("booking_date, amount, id")) == "3 5"
    assert account(files) == (2, "93.00")


def test_what_a_newer_issue_replaced_proves_nothing(files: Bank) -> None:
    before = "2026-11-03 | -10.00 | Shop | Einkauf"
    first, second = "2026-11-04 | {}.00 | Bahn | Karte", "2026-11-05 | 5.00 | Markt | Pfand"
    for amount, closing in ((-5, 90), (-6, 89)):
        told = bookings(f"{before}\n{first.format(amount)}\n{second}")
        files.bring(told, statement=stated(100, closing, days=(2, 6)))
        files.now += timedelta(minutes=1)
    again = bookings(f"{first.format(-6)}\n{second}\n2026-11-07 | -1.00 | Kiosk | Eis")
    assert files.bring(again, statement=stated(90, 88, days=(4, 7))).new_transactions == 1
    assert account(files) == (4, "88.00")


@pytest.mark.parametrize("order", [*permutations([0, 1])])
def test_a_statement_that_returns_to_its_beginning_follows_the_one_that_ends_there(
    files: Bank, order: Sequence[int]
) -> None:
    before = bookings("2026-11-03 | 9.00 | Lohn GmbH | Auslagen 17\n2026-11-04 | -2.00 | Markt | Eis")
    circle = bookings("2026-11-03 | 9.00 | Bahn | Pfand 8\n2026-11-06 | -9.00 | Bahn | Karte 5")
    told = [(before, stated(102, 109, days=(1, 5))), (circle, stated(109, 109, days=(5, 6)))]
    for _ in range(2):
        for place in order:
            files.bring(told[place][0], statement=told[place][1])
        assert account(files) == (4, "109.00")


@pytest.mark.parametrize("order", [*permutations([0, 1])])
def test_statements_that_share_what_adds_up_to_nothing_are_not_apart(files: Bank, order: Sequence[int]) -> None:
    shared = "2026-11-03 | -5.00 | Lohn GmbH | Bon 2\n2026-11-03 | 5.00 | Lohn GmbH | Bon 3"
    told = [
        (f"2026-11-02 | 5.00 | Markt | Pfand 1\n{shared}", stated(95, 100, days=(2, 3))),
        (f"{shared}\n2026-11-02 | 5.00 | Bahn | Karte 4", stated(100, 105, days=(2, 3))),
    ]
    for place in order:
        files.bring(bookings(told[place][0]), statement=told[place][1])
    assert account(files)[0] == 4


def test_a_booking_told_again_under_another_reference_by_equal_balances_is_one(files: Bank) -> None:
    assert bring(files, (("s:1",), 100, 90)) == 1
    assert bring(files, (("s:7",), 100, 90)) == 0
    assert bring(files, (("s:8", "s:9"), 100, 80)) == 1


def test_balances_that_do_not_move_prove_nothing_of_bookings_told_again(files: Bank) -> None:
    both = bookings("2026-11-02 | -10.00 | Kiosk | Kaffee\n2026-11-02 | 10.00 | Kiosk | Pfand")
    for _ in range(2):
        files.bring(both, statement=stated(100, 100))
    assert account(files) == (2, "100.00")


def test_a_number_of_its_own_makes_no_new_bookings_of_those_with_the_same_references(files: Bank) -> None:
    bring(files, MORNING, "1")
    assert bring(files, (MORNING[0], 95, 75), "2") == 0  # a booking before them has been corrected


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_batch_in_two_statements_that_overlap_is_as_much_as_its_details(files: Bank, order: Sequence[int]) -> None:
    batch = ("2026-11-03 | -1.00 | A | a | references=s:7/0", "2026-11-03 | -3.00 | B | b | references=s:7/1")
    told = (
        (("2026-11-02 | -5.00 | C | c", "2026-11-03 | -4.00 | | batch | references=s:7"), stated(105, 96, days=(2, 3))),
        ((*batch, "2026-11-04 | -7.00 | D | d"), stated(100, 89, days=(3, 4))),
    )
    for place in order:
        lines, statement = told[place]
        files.bring(bookings("\n".join(lines)), statement=statement)
    assert [row["amount"] for row in files.rows()] == [-5, -3, -1, -7]


def test_without_the_first_statement_the_second_one_keeps_its_bookings(files: Bank) -> None:
    for each in (MORNING, EVENING):
        bring(files, each)
    later = [row["id"] for row in files.rows("id, booking_date, amount, batch_id") if row["batch_id"] == "batch-102"]

    def without_the_first(session: Transaction) -> None:
        contributions.forget(session, files.user.id, contributions.of_job(session, files.user.id, "job-101"))
        (owned,) = files.rows("id, id AS booking_date, id AS amount", "accounts")
        rebuild.rebuild(session, user=files.user, account_ids={owned["id"]}, job_id="undo", now=NOW)

    files.database.atomically(without_the_first)
    assert (files.ids(), account(files)) == (set(later), (2, "60.00"))


OF_DAYS = "2026-11-0{0} | -{0}.00 | Shop {0} | Einkauf"


@pytest.mark.parametrize(
    ("told", "closing", "days", "left"),
    [
        ((3, 5), 92, (2, 6), "3 5"),  # a newer issue of the same days
        ((3,), 97, (2, 6), "3 4 5"),  # taken at noon, before the others were booked
    ],
)
def test_a_newer_issue_takes_back_what_it_lacks_among_its_bookings_and_an_earlier_file_nothing(
    files: Bank, told: Sequence[int], closing: int, days: tuple[int, int], left: str
) -> None:
    files.bring(bookings("\n".join(map(OF_DAYS.format, (3, 4, 5)))), statement=stated(100, 88, days=(2, 6)))
    files.now += timedelta(minutes=1)
    files.bring(bookings("\n".join(map(OF_DAYS.format, told))), statement=stated(100, closing, days=days))
    assert " ".join(f"{row['booking_date'].day}" for row in files.rows("booking_date, amount, id")) == left


WITH_A_MISTAKE = ((3, 4, 5), 88, (1, 6))
Issue = tuple[Sequence[int], int, tuple[int, int]]
TAKEN_BACK: list[tuple[Issue, str]] = [
    (((3, 4), 93, (1, 9)), "3 4"),  # the last one
    (((3, 5), 92, (1, 9)), "3 5"),
    (((4, 5), 91, (1, 9)), "4 5"),  # the first one
    (((8,), 92, (1, 9)), "8"),  # all that the first file told
    (((3, 4, 5, 8), 80, (1, 9)), "3 4 5 8"),
]


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 1, 0), (1, 0, 1), (0, 1, 0, 1)])
@pytest.mark.parametrize(("later", "left"), TAKEN_BACK)
def test_of_two_statements_that_begin_alike_the_one_that_goes_on_longer_counts_in_whatever_order_they_come(
    files: Bank, later: Issue, left: str, order: Sequence[int]
) -> None:
    for place in order:
        told, closing, days = (WITH_A_MISTAKE, later)[place]
        files.now += timedelta(minutes=1)
        files.bring(bookings("\n".join(map(OF_DAYS.format, told))), statement=stated(100, closing, days=days))
    rows = files.rows("booking_date, amount, id")
    assert " ".join(f"{row['booking_date'].day}" for row in rows) == left
    assert account(files)[1] == f"{100 + sum(row['amount'] for row in rows):.2f}"
    aside = {row["booking_date"].day for row in files.rows("booking_date, amount, id", "taken_back_transactions")}
    assert aside == {3, 4, 5} - set(map(int, left.split()))


def test_without_the_longer_statement_what_it_lacks_is_back(files: Bank) -> None:
    for told, closing, days in (TAKEN_BACK[0][0], WITH_A_MISTAKE):
        files.bring(bookings("\n".join(map(OF_DAYS.format, told))), statement=stated(100, closing, days=days))
    assert len(files.ids()) == 2

    def without_the_longer(session: Transaction) -> None:
        contributions.forget(session, files.user.id, contributions.of_job(session, files.user.id, "job-101"))
        (owned,) = files.rows("id, id AS booking_date, id AS amount", "accounts")
        rebuild.rebuild(session, user=files.user, account_ids={owned["id"]}, job_id="undo", now=NOW)

    files.database.atomically(without_the_longer)
    assert account(files) == (3, "88.00")


def test_one_balance_leads_to_another_by_statements_between_them_also_in_a_circle() -> None:
    links = Links((Decimal(opening), Decimal(closing)) for opening, closing in [(1, 2), (2, 3), (3, 1), (3, 4), (8, 9)])
    led = [links.lead(Decimal(1), Decimal(end)) for end in (1, 2, 3, 4, 8, 9)]
    assert led == [True, True, True, True, False, False]
    assert links.lead(Decimal(7), Decimal(7))
    assert not links.lead(Decimal(4), Decimal(1))


HISTORY_DAYS = 3
USERS = count()


@pytest.fixture(scope="module")
def one_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStore]:
    """A store for all examples, each with a user of its own."""
    database = empty_store(tmp_path_factory.mktemp("proven rows") / "store.duckdb")
    yield database
    database.close()


def cuts(first: int, last: int, random: Random) -> Iterator[tuple[int, int]]:
    """A piece of the history and pieces of it: those of a half, and so on."""
    yield first, last
    if last - first > 1 and random.random() < 0.8:
        middle = random.randrange(first + 1, last)
        yield from (*cuts(first, middle, random), *cuts(middle, last, random))


@settings(max_examples=examples(10))
@given(
    amounts=st.lists(st.sampled_from([-10, -10, -7]), min_size=2, max_size=7),
    references=st.sampled_from(["none", "lasting", "new each time"]),
    random=st.randoms(use_true_random=False),
)
def test_statements_of_parts_of_a_history_in_any_order_are_the_parts_that_were_told(
    one_store: OpenStore, amounts: list[int], references: str, random: Random
) -> None:
    files = files_of(make_bank(one_store, NOW, f"eva{next(USERS)}"))
    days = sorted(random.randrange(HISTORY_DAYS) for _ in amounts)
    number = count()
    told: set[int] = set()
    spans = [*cuts(0, len(amounts), random)]
    for first, last in random.sample(spans, random.randint(1, len(spans))):
        rows = []
        for place in range(first, last):
            row = replace(coffees("")[0], amount=Decimal(amounts[place]), booking_date=DAY + timedelta(days[place]))
            named = {"none": (), "lasting": (f"s:{place}",), "new each time": (f"s:{next(number) + 100}",)}[references]
            rows.append(replace(row, references=named))
        opening = 1000 + sum(amounts[:first])
        statement = StatementRecord(
            opening=Decimal(opening),
            opening_date=rows[0].booking_date,
            closing=Decimal(opening + sum(amounts[first:last])),
            closing_date=rows[-1].booking_date,
            sequence=f"{first}-{last}",
            is_authoritative=True,
        )
        files.bring(rows, statement=statement)
        told.update(range(first, last))
        rows_now = files.rows("booking_date, amount, id, is_adjusting_entry")
        ledger = sorted((row["booking_date"], row["amount"]) for row in rows_now if not row["is_adjusting_entry"])
        assert ledger == sorted((DAY + timedelta(days[each]), amounts[each]) for each in told)
