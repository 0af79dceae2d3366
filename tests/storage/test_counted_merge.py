"""Importing again, in pieces, in any order or with overlaps: the same bookings, the same ids."""

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from tests.conftest import NOW, empty_store, examples
from tests.storage.conftest import GIRO, Bank, bookings, files_of, make_bank

NewBank = Callable[..., Bank]


@pytest.mark.requirement("import.idempotent")
def test_a_file_imported_twice_changes_nothing(bank: Bank) -> None:
    rows = bookings("""
        2026-11-02 | -12.50 | Bäckerei | Brot
        2026-11-03 | 2500.00 | Arbeitgeber | Gehalt
    """)
    first = bank.bring(rows)
    again = bank.bring(rows)
    assert (first.new_transactions, again.new_transactions) == (2, 0)
    assert again.changes.rows() == []
    assert len(bank.ids()) == 2


@pytest.mark.requirement("import.identical-purchases")
def test_two_identical_purchases_of_one_day_stay_two_and_a_third_becomes_a_third(bank: Bank) -> None:
    coffee = bookings("2026-11-02 | -2.80 | Café | Kaffee")
    bank.bring(coffee * 2)
    assert len(bank.ids()) == 2
    assert bank.bring(coffee).new_transactions == 0
    assert bank.bring(coffee * 3).new_transactions == 1
    assert len(bank.ids()) == 3


@pytest.mark.requirement("import.references")
def test_a_reference_that_repeats_within_a_file_is_no_key(bank: Bank) -> None:
    bank.bring(
        bookings("""
        2026-11-02 | -5.00 | A | x | references=txid:1
        2026-11-02 | -6.00 | B | y | references=txid:1
    """)
    )
    assert len(bank.ids()) == 2


@pytest.mark.requirement("import.references")
def test_a_reference_used_again_on_another_day_loses_no_booking(bank: Bank) -> None:
    bank.bring(bookings("2026-11-02 | -5.00 | A | x | references=txid:1"))
    assert bank.bring(bookings("2026-11-03 | -5.00 | A | x | references=txid:1")).new_transactions == 1


@pytest.mark.requirement("import.references")
def test_the_same_reference_is_the_same_booking_although_its_text_differs(bank: Bank) -> None:
    bank.bring(bookings("2026-11-02 | -5.00 | Shop | short | references=servicer:77"))
    report = bank.bring(bookings("2026-11-02 | -5.00 | Shop GmbH | a longer text | references=servicer:77"))
    assert report.new_transactions == 0


@pytest.mark.requirement("import.references")
def test_equal_content_under_other_references_of_the_same_kind_is_another_booking(bank: Bank) -> None:
    bank.bring(bookings("2026-11-02 | -5.00 | Shop | x | references=servicer:1"))
    assert bank.bring(bookings("2026-11-02 | -5.00 | Shop | x | references=servicer:2")).new_transactions == 1


@pytest.mark.requirement("import.references")
def test_equal_content_is_the_same_booking_when_one_source_gives_no_reference(bank: Bank) -> None:
    bank.bring(bookings("2026-11-02 | -5.00 | Shop | x | references=servicer:1"))
    assert bank.bring(bookings("2026-11-02 | -5.00 | Shop | x")).new_transactions == 0


BATCH = """
    2026-11-02 | -5.00 | A | x | references=servicer:7/0
    2026-11-02 | -6.00 | B | y | references=servicer:7/1
"""
WHOLE = "2026-11-02 | -11.00 | | Sammler | references=servicer:7"
CSV_WHOLE = "2026-11-02 | -11.00 | | Sammel-Ueberweisung"
EQUAL_BATCHES = """
    2026-11-02 | -5.00 | A | x | references=batch:2x11/0
    2026-11-02 | -6.00 | B | y | references=batch:2x11/1
    2026-11-02 | -3.00 | C | z | references=batch:2x11/0
    2026-11-02 | -8.00 | D | w | references=batch:2x11/1
"""
EQUAL_WHOLES = "2026-11-02 | -11.00 | | Lohn\n2026-11-02 | -11.00 | | Auslagen"


@pytest.mark.requirement("import.batches")
@pytest.mark.parametrize(
    ("first", "second", "new", "rows"),
    [
        (BATCH, WHOLE, 0, 2),
        (WHOLE, BATCH, 2, 2),
        (BATCH, CSV_WHOLE, 0, 2),
        (CSV_WHOLE, BATCH, 0, 1),
        (EQUAL_BATCHES, EQUAL_WHOLES, 0, 4),
        (EQUAL_WHOLES, EQUAL_BATCHES, 0, 2),
        (EQUAL_BATCHES, CSV_WHOLE, 0, 4),
    ],
)
def test_a_batch_told_by_its_details_and_as_a_whole_is_booked_once(
    bank: Bank, first: str, second: str, new: int, rows: int
) -> None:
    bank.bring(bookings(first))
    money = sum(row["amount"] for row in bank.rows())
    assert bank.bring(bookings(second)).new_transactions == new
    assert bank.bring(bookings(first)).new_transactions == 0
    assert (len(bank.ids()), sum(row["amount"] for row in bank.rows())) == (rows, money)


NOTIFIED = """
    2026-11-02 | 120.00 | Anna | Rechnung 1 {0}
    2026-11-02 |  80.00 | Bert | Rechnung 2 {0}
    2026-11-02 | 100.00 | Carl | Rechnung 3 {0}
"""
OTHERS = "2026-11-02 | 70.00 | Dora | Rechnung 4\n2026-11-02 | 80.00 | Emil | Rechnung 5"
WAGES = "2026-11-02 | 50.00 | Arbeit | Lohn"
BOOKED = "2026-11-02 | 300.00 | | | references=servicer:B77"


@pytest.mark.requirement("import.batches")
@pytest.mark.parametrize(
    ("notified", "booked", "names"),
    [
        (NOTIFIED.format(""), BOOKED, "Anna Bert Carl"),
        (NOTIFIED.format("| references=servicer:B77"), BOOKED, "Anna Bert Carl"),
        (NOTIFIED + OTHERS, f"{BOOKED}\n2026-11-02 | 150.00 | | Sammler", "Anna Bert Carl Dora Emil"),
        (NOTIFIED, f"{BOOKED}\n2026-11-02 | 150.00 | | Sammler\n{WAGES}", "150 Anna Arbeit Bert Carl"),
        (NOTIFIED + WAGES, f"{BOOKED}\n{WAGES}", "Anna Arbeit Bert Carl"),
        ("2026-11-02 | 300.00 | Anna | Rechnung | references=servicer:Z9", BOOKED, "Anna"),
        ("2026-11-02 | 300.00 | Anna | Rechnung", "2026-11-02 | 300.00 | | Gutschrift QR", "Anna"),
    ],
)
@pytest.mark.sampled
def test_what_a_notification_tells_is_the_details_of_what_a_statement_books(
    new_bank: NewBank, notified: str, booked: str, names: str
) -> None:
    details = bookings(notified.replace("{0}", "")), StatementRecord(is_notification=True)
    wholes = bookings(booked), StatementRecord(closing=Decimal("900"), closing_date=date(2026, 11, 2))
    for number, order in enumerate(((details, wholes), (wholes, details))):
        files = files_of(new_bank(f"u{number}"))
        for told, statement in order * 2:
            files.bring(told, statement=statement)
        rows = files.rows("amount, counterpart_name, id, booking_date")
        assert " ".join(sorted(row["counterpart_name"] or f"{row['amount']:.0f}" for row in rows)) == names
        assert sum(row["amount"] for row in rows) == sum(each.amount for each in wholes[0])


def on(day: int, told: str) -> list[TransactionRecord]:
    return bookings(told.replace("-02 |", f"-{day:02} |"))


def stated_on(day: int, opening: int, closing: int) -> StatementRecord:
    return StatementRecord(
        opening=Decimal(opening),
        opening_date=date(2026, 11, day),
        closing=Decimal(closing),
        closing_date=date(2026, 11, day),
        is_authoritative=True,
    )


@pytest.mark.requirement("import.batches")
@pytest.mark.parametrize("days", [(2, 3), (3, 2), (6, 9)])  # the 6th is a Friday
@pytest.mark.parametrize(
    ("notified", "names"), [(NOTIFIED.format(""), "Anna Bert Carl"), ("2026-11-02 | 300.00 | Anna | Rechnung", "Anna")]
)
@pytest.mark.parametrize("purpose", ["", "Gutschrift QR"])
@pytest.mark.sampled
def test_what_a_notification_dates_a_bank_day_off_is_of_the_day_on_which_a_statement_books_it(
    new_bank: NewBank, days: tuple[int, int], notified: str, names: str, purpose: str
) -> None:
    notification = on(days[0], notified), StatementRecord(is_notification=True)
    booked = on(days[1], f"2026-11-02 | 300.00 | | {purpose}\n{WAGES}"), stated_on(days[1], 100, 450)
    for number, order in enumerate(((notification, booked), (booked, notification))):
        files = files_of(new_bank(f"u{number}"))
        for told, statement in order * 2:
            files.bring(told, statement=statement)
        rows = files.rows("booking_date, amount, counterpart_name, id")
        assert " ".join(sorted(row["counterpart_name"] for row in rows)) == f"Anna Arbeit{names[4:]}"
        assert {row["booking_date"].day for row in rows} == {days[1]}
        assert sum(row["amount"] for row in rows) == 350
        (stated,) = files.rows("told, position AS id, closing_date AS booking_date, closing AS amount", "statements")
        assert set(stated["told"].split()) == files.ids()


@pytest.mark.requirement("import.batches")
@pytest.mark.parametrize("name", ["Anna", ""])
@pytest.mark.parametrize("notified", ["2026-11-02 | 300.00 | Anna | Rechnung", NOTIFIED.format("")])
@pytest.mark.sampled
def test_equal_payments_of_two_days_that_balances_prove_stay_two_however_they_are_notified(
    new_bank: NewBank, notified: str, name: str
) -> None:
    booked = f"2026-11-02 | 300.00 | {name} | "
    files_by_name = {
        "n2": (on(2, notified), StatementRecord(is_notification=True)),
        "n3": (on(3, notified), StatementRecord(is_notification=True)),
        "s2": (on(2, booked), stated_on(2, 100, 400)),
        "s3": (on(3, booked), stated_on(3, 400, 700)),
    }
    given = ["n2 s3 s2", "s3 n2 s2", "s3 s2 n2", "s2 s3 n2", "n2 s2 s3", "n3 s2 s3", "n2 n3 s3 s2", "n2 s3 n3 s2"]
    for order in given if name == "" or "Carl" not in notified else ():
        files = files_of(new_bank(order.replace(" ", "")))
        for each in (order + " " + order).split():
            files.bring(files_by_name[each][0], statement=files_by_name[each][1])
        assert (order, sum(row["amount"] for row in files.rows())) == (order, 600)


@pytest.mark.requirement("import.batches")
def test_what_another_notification_tells_is_not_told_by_that_of_the_day_before(bank: Bank) -> None:
    files, payment = files_of(bank), "2026-11-02 | 300.00 | Anna | Rechnung"
    files.bring(on(3, BOOKED), statement=stated_on(3, 400, 700))
    for day in (3, 2):
        files.bring(on(day, payment), statement=StatementRecord(is_notification=True))
    assert [row["booking_date"].day for row in files.rows()] == [2, 3]


@pytest.mark.requirement("import.batches")
def test_what_a_statement_has_booked_is_not_that_of_the_next_day(bank: Bank) -> None:
    files, payment = files_of(bank), "2026-11-02 | 300.00 | Anna | Rechnung"
    files.bring(on(2, payment), statement=StatementRecord(is_notification=True))
    files.bring(on(2, payment))  # as from a CSV file, without balances
    files.bring(on(3, payment))
    assert [row["booking_date"].day for row in files.rows()] == [2, 3]


@pytest.mark.requirement("import.batches")
def test_a_notification_of_another_week_is_a_booking_of_its_own(bank: Bank) -> None:
    files = files_of(bank)
    files.bring(on(2, BOOKED), statement=stated_on(2, 100, 400))
    notified = on(9, NOTIFIED.format(""))
    assert files.bring(notified, statement=StatementRecord(is_notification=True)).new_transactions == 3


@pytest.mark.requirement("import.batches")
@pytest.mark.parametrize("count", [1, 2])
def test_a_notification_has_references_of_its_own(new_bank: NewBank, count: int) -> None:
    rows = ["2026-11-02 | 80.00 | Anna | Rechnung"] * count
    notified, booked = (
        bookings("\n".join(f"{row} | references=servicer:{letter}{number}" for number, row in enumerate(rows)))
        for letter in "NS"
    )
    of = {"N": StatementRecord(is_notification=True), "S": StatementRecord()}
    for name, order in (("u1", "NSNS"), ("u2", "SNSN")):
        files = files_of(new_bank(name))
        for letter in order:
            files.bring(notified if letter == "N" else booked, statement=of[letter])
        assert len(files.rows()) == count


@pytest.mark.requirement("import.batches")
def test_a_statement_is_proven_by_the_details_of_what_it_told_as_a_whole(bank: Bank) -> None:
    day, files = date(2026, 11, 2), files_of(bank)
    balances = {"opening": Decimal(100), "opening_date": day, "closing": Decimal(400), "closing_date": day}
    files.bring(bookings(BOOKED), statement=StatementRecord(is_authoritative=True, **balances))  # type: ignore[arg-type]
    files.bring(bookings(NOTIFIED.format("")), statement=StatementRecord(is_notification=True))
    (stated,) = files.rows("told, position AS id, closing_date AS booking_date, closing AS amount", "statements")
    assert set(stated["told"].split()) == files.ids()


@pytest.mark.requirement("import.batches")
def test_a_booking_that_names_somebody_or_that_no_details_add_up_to_stays_beside_them(bank: Bank) -> None:
    bank.bring(bookings("2026-11-02 | 300.00 | Zoe | Verkauf\n2026-11-02 | 310.00 | | Sammler"))
    statement = StatementRecord(is_notification=True)
    assert bank.bring(bookings(NOTIFIED.format("")), statement=statement).new_transactions == 3
    assert len(bank.ids()) == 5


@pytest.mark.requirement("import.batches")
def test_details_that_do_not_add_up_to_the_whole_are_bookings_of_their_own(bank: Bank) -> None:
    bank.bring(bookings("2026-11-02 | -12.00 | | Sammler | references=servicer:7"))
    assert bank.bring(bookings(BATCH)).new_transactions == 2


@pytest.mark.requirement("import.batches")
def test_of_two_equal_batches_the_one_that_was_told_as_a_whole_is_known(bank: Bank) -> None:
    bank.bring(bookings(CSV_WHOLE))
    assert bank.bring(bookings(EQUAL_BATCHES)).new_transactions == 2
    assert sum(row["amount"] for row in bank.rows()) == -22


@pytest.mark.requirement("import.batches")
def test_a_payment_beside_the_whole_of_one_of_two_equal_batches_is_not_taken_for_the_other(bank: Bank) -> None:
    bank.bring(bookings(EQUAL_BATCHES))
    assert bank.bring(bookings(f"{CSV_WHOLE}\n2026-11-02 | -11.00 | Shop | Einkauf")).new_transactions == 1


@pytest.mark.requirement("import.batches")
@pytest.mark.parametrize("numbers", [(17, 18), (0, 2), (0, 0)])
def test_references_that_leave_a_number_out_are_those_of_no_details(bank: Bank, numbers: tuple[int, int]) -> None:
    one, other = numbers
    bank.bring(bookings(BATCH.replace("7/0", f"7/{one}").replace("7/1", f"7/{other}")))
    assert bank.bring(bookings(CSV_WHOLE)).new_transactions == 1


@pytest.mark.requirement("import.batches")
@pytest.mark.parametrize("further", ["references=servicer:8", "counterpart_iban=DE02120300000000202051"])
def test_a_booking_with_a_reference_or_an_account_that_no_detail_has_is_not_their_batch(
    bank: Bank, further: str
) -> None:
    bank.bring(bookings(BATCH, counterpart_iban="DE89370400440532013000"))
    assert bank.bring(bookings(f"2026-11-02 | -11.00 | C | z | {further}")).new_transactions == 1


@pytest.mark.requirement("import.batches")
def test_of_two_bookings_of_the_sum_the_one_without_a_counterpart_is_the_batch(bank: Bank) -> None:
    bank.bring(bookings(BATCH))
    assert bank.bring(bookings(f"2026-11-02 | -11.00 | Kino | zwei Karten\n{CSV_WHOLE}")).new_transactions == 1
    assert "Kino" in [row["counterpart_name"] for row in bank.rows()]


@pytest.mark.requirement("import.line-breaks")
def test_line_breaks_and_case_make_no_new_booking(bank: Bank) -> None:
    bank.bring(bookings("2026-11-02 | -5.00 | Stadtwerke | Abschlag November Vertrag 12"))
    assert (
        bank.bring(bookings("2026-11-02 | -5.00 | STADTWERKE | Abschlag Nov ember Ver trag 12")).new_transactions == 0
    )


@pytest.mark.requirement("import.provider-id")
def test_an_id_with_another_day_and_another_amount_is_another_booking(bank: Bank) -> None:
    bank.bring(bookings("2026-11-02 | -5.00 | Shop | x | provider_id=p1"))
    before = bank.ids()
    report = bank.bring(bookings("2026-11-03 | -5.50 | Shop | corrected | provider_id=p1"))
    assert (report.new_transactions, len(bank.ids())) == (1, 2)
    assert before < bank.ids()


@pytest.mark.requirement("import.provider-id")
def test_another_amount_under_an_id_on_its_day_is_a_correction(bank: Bank) -> None:
    bank.bring(bookings("2026-11-02 | -5.00 | Shop | Einkauf | provider_id=p1"))
    (before,) = bank.ids()
    report = bank.bring(bookings("2026-11-02 | -5.50 | Shop | Einkauf im November | provider_id=p1"))
    assert (report.new_transactions, report.changes.rows()) == (0, [(before, "modified")])
    (row,) = bank.rows("id, amount, purpose, booking_date")
    assert (row["id"], row["amount"], row["purpose"]) == (before, Decimal("-5.50000"), "Einkauf im November")


@pytest.mark.requirement("import.reproducible")
def test_ids_are_the_same_after_a_rebuild_and_differ_between_users(new_bank: NewBank) -> None:
    rows = bookings("2026-11-02 | -5.00 | Shop | x")
    eva, adam = new_bank("eva"), new_bank("adam")
    eva.bring(rows)
    adam.bring(rows)
    before = eva.ids()
    assert not before & adam.ids()
    eva.database.execute("DELETE FROM transactions WHERE user_id = $1", eva.user.id)
    eva.bring(rows)
    assert eva.ids() == before


@pytest.mark.requirement("import.account-by-iban")
def test_one_iban_through_two_connections_is_one_account(new_bank: NewBank) -> None:
    by_file, by_bank = new_bank("eva", "Files"), new_bank("eva", "Bank")
    by_file.bring(bookings("2026-11-02 | -5.00 | Shop | x"))
    assert by_bank.bring(bookings("2026-11-02 | -5.00 | Shop | x")).new_transactions == 0
    assert len(by_bank.database.rows("SELECT id FROM accounts")) == 1


@pytest.mark.requirement("import.account-by-iban")
def test_one_iban_with_two_currencies_is_two_accounts(bank: Bank) -> None:
    bank.bring(bookings("2026-11-02 | -5.00 | Shop | x"))
    dollars = AccountRecord(stable_key=GIRO.stable_key, iban=GIRO.iban, currency="USD")
    bank.bring(bookings("2026-11-02 | -5.00 | Shop | x", currency="USD"), account=dollars)
    assert len(bank.database.rows("SELECT id FROM accounts")) == 2


HISTORY = bookings("""
    2026-10-01 | -2.80 | Café | Kaffee
    2026-10-01 | -2.80 | Café | Kaffee
    2026-10-01 | -2.80 | Café | Espresso
    2026-10-02 | -2.80 | Café | Kaffee
    2026-10-02 | 100.00 | Oma | Geschenk | references=servicer:a
    2026-10-03 | 100.00 | Oma | Geschenk | references=servicer:b
    2026-10-03 | -40.00 | Tanke | | provider_id=p9
    2026-10-04 | -2.80 | Café | Kaffee
""")


@pytest.mark.requirement("import.any-order")
@settings(max_examples=examples(6))
@given(
    windows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6),
    order=st.randoms(use_true_random=False),
)
def test_any_split_into_overlapping_whole_days_gives_the_same_bookings(
    tmp_path_factory: pytest.TempPathFactory, windows: list[tuple[int, int]], order: Random
) -> None:
    days = sorted({record.booking_date for record in HISTORY})
    files = [[record for record in HISTORY if record.booking_date == day] for day in days]
    for first, last in windows:
        files.append(
            [record for record in HISTORY if days[min(first, last)] <= record.booking_date <= days[max(first, last)]]
        )
    order.shuffle(files)
    database = empty_store(tmp_path_factory.mktemp("split") / "store.duckdb")
    whole, pieces = make_bank(database, NOW, "Eva"), make_bank(database, NOW, "eva2")
    whole.bring(HISTORY)
    for file in files:
        pieces.bring(file)
    said = "booking_date, amount, counterpart_name, purpose, identity"
    assert sorted(map(str, pieces.rows(said))) == sorted(map(str, whole.rows(said)))
    database.close()
