"""What an import does beside merging: pending rows, balances, gaps between statements, flags, the journal."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest
from msgspec.structs import replace

from analytics.records import AccountRecord, Batch, InvalidRecord, Record, StatementRecord
from storage import accounts, journal
from storage.importing import ingest
from storage.importing.batches import read_batch
from storage.importing.statements import BY_THE_PERSON
from tests.conftest import NOW
from tests.engines import tables_of
from tests.storage.conftest import GIRO, Bank, bookings, files_of

NewBank = Callable[..., Bank]
COMPLETE = StatementRecord(is_pending_complete=True)


def pending(table: str) -> list[Record]:
    return [replace(record, status="pending") for record in bookings(table)]


def bring_all(bank: Bank, records: Sequence[Record], statement: StatementRecord | None = None) -> ingest.ImportReport:
    """One batch of booked and pending rows together."""
    bank.count += 1
    flat: list[Record] = [GIRO, *records, *([statement] if statement else [])]
    return bank.store(read_batch(Batch(id=f"batch-{bank.count}", records=iter(flat)), today=bank.now.date()))


def stated(opening: str, first: str, closing: str, last: str, **further: object) -> StatementRecord:
    """A statement: its opening balance at the end of a day, its closing balance at the end of another."""
    given = {
        "opening": Decimal(opening),
        "opening_date": date.fromisoformat(first),
        "closing": Decimal(closing),
        "closing_date": date.fromisoformat(last),
        "is_authoritative": True,
    }
    return StatementRecord(**(given | further))  # type: ignore[arg-type]  # the fields' names and types


def entries(bank: Bank) -> list[tuple[str, str]]:
    """Day and amount of the adjusting entries."""
    rows = bank.rows("booking_date, amount, id, is_adjusting_entry")
    return [(row["booking_date"].isoformat(), f"{row['amount']:.2f}") for row in rows if row["is_adjusting_entry"]]


def balance(bank: Bank) -> Decimal | None:
    (account,) = accounts.of_user(bank.database, bank.user.id)
    return account.balance


@pytest.mark.requirement("import.pending")
def test_a_pending_row_is_kept_but_not_served(bank: Bank) -> None:
    report = bring_all(bank, pending("2026-11-18 | -12.50 | Shop | Karte"))
    assert report.new_transactions == 0
    assert bank.ids() == set()
    assert len(bank.rows("id, booking_date, amount", "pending_transactions")) == 1


@pytest.mark.requirement("import.pending")
def test_a_pending_row_that_books_under_another_text_keeps_id_and_created_at(bank: Bank) -> None:
    bring_all(bank, pending("2026-11-18 | -12.50 | Shop Berlin | VORMERKUNG Shop Berlin"))
    (before,) = bank.rows("id, created_at, booking_date, amount", "pending_transactions")
    bank.now += timedelta(days=2)
    booked = bookings("2026-11-20 | -12.50 | SHOP BERLIN SAGT DANKE | Kartenzahlung Shop Berlin 4711")
    report = bring_all(bank, booked, COMPLETE)
    (after,) = bank.rows("id, created_at, booking_date, amount")
    assert (after["id"], after["created_at"]) == (before["id"], before["created_at"])
    assert report.new_transactions == 1
    assert report.changes.rows() == [(before["id"], "added")]
    assert bank.rows("id, booking_date, amount", "pending_transactions") == []


@pytest.mark.requirement("import.pending")
@pytest.mark.parametrize(("day", "is_the_same"), [("2026-11-17", True), ("2026-11-18", False)])
def test_a_pending_row_books_within_seven_days_or_not_at_all(bank: Bank, day: str, is_the_same: bool) -> None:
    bring_all(bank, pending("2026-11-10 | -12.50 | Shop | Karte"))
    (before,) = bank.rows("id, booking_date, amount", "pending_transactions")
    bring_all(bank, bookings(f"{day} | -12.50 | Shop | Karte gebucht"))
    assert (bank.ids() == {before["id"]}) is is_the_same


@pytest.mark.requirement("import.pending")
def test_a_pending_row_is_no_booking_of_another_counterpart_whose_text_has_the_same_common_words(bank: Bank) -> None:
    bring_all(bank, pending("2026-11-05 | 2450 | Deutsche Bahn AG | 3806897395 Beleg vom 05.11.2026"))
    (before,) = bank.rows("id, booking_date, amount", "pending_transactions")
    files_of(bank).bring(bookings("2026-11-09 | 2450 | Übermut Maschinenbau | 5648868427 Beleg vom 09.11.2026"))
    assert before["id"] not in bank.ids()
    files_of(bank).bring(bookings("2026-11-05 | 2450 | Deutsche Bahn AG | 3806897395 Beleg vom 05.11.2026"))
    assert before["id"] in bank.ids()


@pytest.mark.requirement("import.pending")
def test_a_booking_in_the_words_of_a_pending_row_that_booked_on_another_day_is_another_one(bank: Bank) -> None:
    first, second = (
        bookings(f"2026-11-{day} | -2.80 | Cafe | Kaffee {day}", value_date=date(2026, 11, day)) for day in (15, 18)
    )
    bring_all(bank, [replace(first[0], status="pending")])
    files = files_of(bank)
    files.bring(bookings("2026-11-18 | -2.80 | Cafe | Kaffee 18"))
    assert files.bring(first + second).new_transactions == 1
    assert [(row["booking_date"].day, row["purpose"]) for row in bank.rows()] == [(15, "Kaffee 15"), (18, "Kaffee 18")]


@pytest.mark.requirement("import.pending")
def test_what_is_pending_still_with_another_amount_keeps_its_id(bank: Bank) -> None:
    bring_all(bank, pending("2026-11-18 | -5.00 | Hotel | Anzahlung | provider_id=1"))
    (before,) = bank.rows(table="pending_transactions")
    bring_all(bank, pending("2026-11-19 | -6.00 | Hotel | Anzahlung | provider_id=1"), COMPLETE)
    (after,) = bank.rows(table="pending_transactions")
    assert (after["id"], after["amount"]) == (before["id"], -6)


@pytest.mark.requirement("import.pending")
@pytest.mark.parametrize("amount", ["-7.00", "-5.00"], ids=["other amounts", "one amount"])
def test_pending_rows_whose_ids_are_exchanged_book_by_their_words(bank: Bank, amount: str) -> None:
    shop, cafe = "2026-11-18 | -5.00 | Shop | Brot", f"2026-11-18 | {amount} | Cafe | Torte"
    bring_all(bank, pending(f"{shop} | provider_id=1\n{cafe} | provider_id=2"))
    before = {row["counterpart_name"]: row["id"] for row in bank.rows(table="pending_transactions")}
    bring_all(bank, bookings(f"{shop} | provider_id=2\n{cafe} | provider_id=1"), COMPLETE)
    assert {row["counterpart_name"]: row["id"] for row in bank.rows()} == before


@pytest.mark.requirement("import.pending")
@pytest.mark.parametrize(("amount", "is_it"), [("-5.00", True), ("-6.00", False)])
def test_a_pending_row_books_under_our_own_id_in_an_export_that_comes_back(
    bank: Bank, amount: str, *, is_it: bool
) -> None:
    bring_all(bank, pending("2026-11-18 | -5.00 | Hotel | Vormerkung"))
    (before,) = bank.rows(table="pending_transactions")
    files_of(bank).bring(bookings(f"2026-11-18 | {amount} | Anders | Rechnung | provider_id={before['id']}"))
    assert (bank.ids() == {before["id"]}) is is_it


@pytest.mark.requirement("import.pending")
def test_what_is_pending_still_in_fuller_words_keeps_its_id(bank: Bank) -> None:
    bring_all(bank, pending("2026-11-18 | -5.00 | Hotel | Anzahlung"))
    (before,) = bank.rows(table="pending_transactions")
    bring_all(bank, pending("2026-11-18 | -5.00 | Hotel Adler | Anzahlung Zimmer 7"))
    (after,) = bank.rows(table="pending_transactions")
    assert (after["id"], after["purpose"]) == (before["id"], "Anzahlung Zimmer 7")


@pytest.mark.requirement("import.pending")
def test_a_complete_set_of_pending_rows_ends_the_others_and_an_incomplete_one_does_not(bank: Bank) -> None:
    bring_all(bank, pending("2026-11-18 | -1.00 | A | a\n2026-11-18 | -2.00 | B | b"))
    kept = {row["id"] for row in bank.rows("id, booking_date, amount", "pending_transactions") if row["amount"] == -2}
    bring_all(bank, pending("2026-11-19 | -3.00 | C | c"))
    assert len(bank.rows("id, booking_date, amount", "pending_transactions")) == 3
    bring_all(bank, pending("2026-11-18 | -2.00 | B | b"), COMPLETE)
    assert {row["id"] for row in bank.rows("id, booking_date, amount", "pending_transactions")} == kept
    bring_all(bank, [], COMPLETE)
    assert bank.rows("id, booking_date, amount", "pending_transactions") == []


@pytest.mark.requirement("import.pending")
def test_a_pending_row_whose_booking_is_there_already_is_not_kept(bank: Bank) -> None:
    bank.bring(bookings("2026-11-19 | -12.50 | Shop | Karte"))
    bring_all(bank, pending("2026-11-18 | -12.50 | Shop | Karte"))
    assert bank.rows("id, booking_date, amount", "pending_transactions") == []
    assert len(bank.ids()) == 1


@pytest.mark.requirement("import.gaps")
def test_money_that_moved_between_two_statements_becomes_one_adjusting_entry(bank: Bank) -> None:
    october = bookings("2026-10-05 | -100.00 | A | a")
    december = bookings("2026-12-05 | -50.00 | B | b")
    bank.bring(october, statement=stated("1000", "2026-09-30", "900", "2026-10-31"))
    assert entries(bank) == []
    report = bank.bring(december, statement=stated("700", "2026-11-30", "650", "2026-12-31"))
    assert entries(bank) == [("2026-11-29", "-200.00")]
    assert report.new_transactions == 1
    assert [change for _, change in report.changes.rows()] == ["added", "added"]
    total = sum(row["amount"] for row in bank.rows("id, booking_date, amount"))
    assert total == Decimal("650") - Decimal("1000")


@pytest.mark.requirement("import.gaps")
def test_sums_that_the_store_cannot_hold_refuse_no_import(bank: Bank) -> None:
    low, high = "-999999999999999", "999999999999999"
    bank.bring([], statement=stated(low, "2026-08-31", low, "2026-09-30"))
    bank.bring([], statement=stated(high, "2026-10-31", high, "2026-11-05"))
    assert entries(bank) == []
    said = StatementRecord(closing=Decimal(high), closing_date=date(2026, 11, 6), sequence=BY_THE_PERSON)
    bank.bring(bookings("2026-11-07 | 1.00 | A | a"), statement=said)
    assert balance(bank) == Decimal(high)


@pytest.mark.requirement("import.gaps")
def test_an_adjusting_entry_shrinks_and_goes_as_older_files_fill_the_gap(bank: Bank) -> None:
    bank.bring(bookings("2026-10-05 | -100.00 | A | a"), statement=stated("1000", "2026-09-30", "900", "2026-10-31"))
    bank.bring(bookings("2026-12-05 | -50.00 | B | b"), statement=stated("700", "2026-11-30", "650", "2026-12-31"))
    rows = bank.rows("id, booking_date, amount, is_adjusting_entry")
    (entry,) = [row["id"] for row in rows if row["is_adjusting_entry"]]
    report = bank.bring(bookings("2026-11-10 | -150.00 | C | c"))
    assert entries(bank) == [("2026-11-29", "-50.00")]
    assert (entry, "modified") in report.changes.rows()
    november = bookings("2026-11-10 | -150.00 | C | c\n2026-11-20 | -50.00 | D | d")
    report = bank.bring(november, statement=stated("900", "2026-10-31", "700", "2026-11-30"))
    assert entries(bank) == []
    assert (entry, "removed") in report.changes.rows()
    assert report.new_transactions == 1


@pytest.mark.requirement("import.gaps")
@pytest.mark.parametrize("is_noon_told", [False, True])
def test_what_a_statement_that_closes_at_noon_does_not_hold_and_another_tells_is_not_missing(
    bank: Bank, is_noon_told: bool
) -> None:
    noon, rest = "2026-11-05 | -18.00 | A | a", "2026-11-02 | -2.00 | B | b\n2026-11-05 | -20.00 | C | c"
    if is_noon_told:
        bank.bring(bookings(noon), statement=stated("98", "2026-11-04", "80", "2026-11-05"))
    bank.bring(bookings(f"{noon}\n{rest}"), statement=stated("100", "2026-11-01", "60", "2026-11-05"))
    bank.bring(bookings("2026-11-08 | -5.00 | D | d"), statement=stated("55", "2026-11-08", "50", "2026-11-08"))
    assert entries(bank) == [("2026-11-07", "-5.00")]
    bank.bring(bookings("2026-11-07 | -5.00 | E | e"), statement=stated("60", "2026-11-07", "55", "2026-11-07"))
    assert entries(bank) == []


@pytest.mark.requirement("import.gaps")
def test_until_a_statement_ends_with_its_day_no_adjusting_entry_stands_beside_what_was_booked_after_it(
    bank: Bank,
) -> None:
    bank.bring(bookings("2026-11-05 | -20.00 | C | c"))
    bank.bring(bookings("2026-11-05 | -18.00 | A | a"), statement=stated("98", "2026-11-05", "80", "2026-11-05"))
    bank.bring(bookings("2026-11-08 | -5.00 | D | d"), statement=stated("60", "2026-11-08", "55", "2026-11-08"))
    assert entries(bank) == []


@pytest.mark.requirement("import.gaps")
def test_after_two_statements_of_one_day_what_is_missing_follows_the_second_one(bank: Bank) -> None:
    bank.bring(bookings("2026-11-05 | -18.00 | A | a"), statement=stated("98", "2026-11-05", "80", "2026-11-05"))
    bank.bring(bookings("2026-11-05 | -20.00 | C | c"), statement=stated("80", "2026-11-05", "60", "2026-11-05"))
    bank.bring(bookings("2026-11-08 | -5.00 | D | d"), statement=stated("55", "2026-11-08", "50", "2026-11-08"))
    assert entries(bank) == [("2026-11-07", "-5.00")]


@pytest.mark.requirement("import.gaps")
@pytest.mark.parametrize(
    "statement",
    [
        stated("700", "2026-11-30", "650", "2026-12-31", is_authoritative=False),
        stated("700", "2026-11-30", "651", "2026-12-31"),
    ],
    ids=["not authoritative", "does not add up"],
)
def test_only_statements_that_add_up_and_claim_to_be_whole_make_entries(bank: Bank, statement: StatementRecord) -> None:
    bank.bring(bookings("2026-10-05 | -100.00 | A | a"), statement=stated("1000", "2026-09-30", "900", "2026-10-31"))
    bank.bring(bookings("2026-12-05 | -50.00 | B | b"), statement=statement)
    assert entries(bank) == []


@pytest.mark.requirement("import.balance")
def test_the_balance_is_that_of_the_newest_statement_in_whatever_order_they_come(bank: Bank) -> None:
    bank.bring([], statement=stated("0", "2026-10-31", "300", "2026-11-30", is_authoritative=False))
    assert balance(bank) == 300
    bank.bring([], statement=stated("0", "2026-09-30", "100", "2026-10-31", is_authoritative=False))
    assert balance(bank) == 300


@pytest.mark.requirement("import.balance")
def test_of_two_statements_of_one_day_the_higher_number_counts(bank: Bank) -> None:
    for number, closing in (("9", "90"), ("10", "100"), ("8", "80")):
        said = stated("0", "2026-10-31", closing, "2026-11-30", sequence=number, is_authoritative=False)
        bank.bring([], statement=said)
    assert balance(bank) == 100


@pytest.mark.requirement("import.balance")
def test_an_account_whose_source_says_no_balance_has_none(bank: Bank) -> None:
    bank.bring(bookings("2026-11-02 | -5.00 | Shop | x"))
    assert balance(bank) is None


@pytest.mark.requirement("isPotentialDuplicate")
def test_a_look_alike_of_another_source_is_flagged_and_kept(new_bank: NewBank) -> None:
    files, live = new_bank("eva", "Files"), new_bank("eva", "Bank")
    files.bring(bookings("2026-11-02 | -49.90 | Zalando SE | Bestellung 4711 | references=servicer:1"))
    live.bring(bookings("2026-11-03 | -49.90 | Zalando SE | Bestellung 4711 | references=servicer:2"), id_="other")
    flags = [row["is_potential_duplicate"] for row in live.rows("id, booking_date, amount, is_potential_duplicate")]
    assert flags == [False, True]


@pytest.mark.requirement("isPotentialDuplicate")
def test_equal_rows_of_one_file_are_real_and_not_flagged(bank: Bank) -> None:
    bank.bring(bookings("2026-11-02 | -2.80 | Café | Kaffee") * 2)
    rows = bank.rows("id, booking_date, amount, is_potential_duplicate")
    assert [row["is_potential_duplicate"] for row in rows] == [False, False]


@pytest.mark.requirement("journal")
def test_the_journal_has_every_change_once_by_the_state_that_it_left(bank: Bank) -> None:
    first = bank.bring(bookings("2026-11-02 | -5.00 | A | a\n2026-11-03 | -6.00 | B | b"))
    second = bank.bring(bookings("2026-11-04 | -7.00 | C | c"))
    rows = bank.database.rows("SELECT * FROM journal WHERE user_id = $1 ORDER BY sequence", bank.user.id)
    assert [row["sequence"] for row in rows] == [first.data_version, first.data_version, second.data_version]
    assert {row["transaction_id"] for row in rows} == bank.ids()
    assert [row["job_id"] for row in rows] == ["job-1", "job-1", "job-2"]
    assert {row["change"] for row in rows} == {"added"}
    assert first.data_version < second.data_version == bank.database.rows("SELECT state FROM users")[0]["state"]


@pytest.mark.requirement("journal")
def test_the_journal_replayed_is_what_is_stored(bank: Bank) -> None:
    bank.bring(bookings("2026-10-05 | -100.00 | A | a"), statement=stated("1000", "2026-09-30", "900", "2026-10-31"))
    bank.bring(bookings("2026-12-05 | -50.00 | B | b"), statement=stated("700", "2026-11-30", "650", "2026-12-31"))
    bank.bring(bookings("2026-11-10 | -200.00 | C | c"))
    bank.bring(bookings("2026-11-10 | -200.00 | C | c"))
    alive: set[str] = set()
    for row in bank.database.rows("SELECT transaction_id, change FROM journal ORDER BY sequence"):
        match row["change"]:
            case "added":
                assert row["transaction_id"] not in alive
                alive.add(row["transaction_id"])
            case "modified":
                assert row["transaction_id"] in alive
            case "removed":
                alive.remove(row["transaction_id"])
    assert alive == bank.ids()


@pytest.mark.requirement("import.atomic")
def test_an_import_that_breaks_off_leaves_nothing(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    bank.bring(bookings("2026-11-02 | -5.00 | A | a"))
    before = dump(bank)

    def fails(*_: object, **__: object) -> int:
        raise OSError("no space left")

    monkeypatch.setattr(journal, "record", fails)
    with pytest.raises(OSError, match="no space"):
        bank.bring(bookings("2026-11-03 | -6.00 | B | b"), statement=stated("10", "2026-11-01", "4", "2026-11-03"))
    assert dump(bank) == before


@pytest.mark.requirement("import.atomic")
def test_a_batch_with_one_bad_amount_is_refused_whole(bank: Bank) -> None:
    for amount in ("NaN", "Infinity", "1E+15", "0.000001"):
        with pytest.raises(InvalidRecord):
            bank.bring(bookings(f"2026-11-02 | -5.00 | A | a\n2026-11-03 | {amount} | B | b"))
    assert bank.ids() == set()
    bank.bring(bookings("2026-11-02 | -999999999999999.99999 | A | a"))
    (row,) = bank.rows("id, booking_date, amount")
    assert row["amount"] == Decimal("-999999999999999.99999")


@pytest.mark.requirement("import.atomic")
def test_a_source_that_breaks_while_it_is_read_has_imported_nothing(bank: Bank) -> None:
    def broken() -> Iterator[Record]:
        yield GIRO
        yield from bookings("2026-11-02 | -5.00 | A | a")
        raise ValueError("cut off")

    with pytest.raises(ValueError, match="cut off"):
        read_batch(Batch(id="b", records=broken()), today=NOW.date())
    with pytest.raises(InvalidRecord, match="before its account"):
        read_batch(Batch(id="b", records=iter(bookings("2026-11-02 | -5.00 | A | a"))), today=NOW.date())


@pytest.mark.requirement("isolation")
def test_an_iban_that_two_users_have_is_two_accounts(new_bank: NewBank) -> None:
    eva, adam = new_bank("eva"), new_bank("adam")
    shared = AccountRecord(stable_key="x", iban=GIRO.iban, currency="EUR")
    for each in (eva, adam):
        each.bring(bookings("2026-11-02 | -5.00 | A | a"), account=shared)
    assert len({row["id"] for row in eva.database.rows("SELECT id FROM accounts")}) == 2
    assert not eva.ids() & adam.ids()


def dump(bank: Bank) -> dict[str, list[str]]:
    """Everything that is stored."""
    return {table: sorted(map(str, bank.database.rows(f"SELECT * FROM {table}"))) for table in tables_of(bank.database)}


@pytest.mark.requirement("import.days-ahead")
def test_a_booking_is_at_most_sixty_days_ahead(bank: Bank) -> None:
    bank.bring(bookings("2027-01-19 | -5.00 | A | a"))
    with pytest.raises(InvalidRecord, match="A transaction is dated more than 60 days ahead"):
        bank.bring(bookings("2026-11-02 | -5.00 | B | b\n2027-01-20 | -5.00 | A | a"))
    assert len(bank.ids()) == 1


@pytest.mark.requirement("import.days-ahead")
@pytest.mark.parametrize("opening_date", ["2026-11-18", "2199-12-31"])
def test_a_balance_that_is_dated_later_is_set_aside_and_said(bank: Bank, opening_date: str) -> None:
    bank.bring(bookings("2026-11-18 | -10.00 | A | a"), statement=stated("1000", "2026-11-17", "990", "2026-11-18"))
    ahead = stated("1000", opening_date, "1000000", "2199-12-31")
    flat: list[Record] = [GIRO, *bookings("2026-11-19 | -5.00 | B | b"), ahead]
    read = read_batch(Batch(id="ahead", records=iter(flat)), today=NOW.date())
    bank.store(read)
    assert balance(bank) == 990
    assert entries(bank) == []
    assert len(bank.ids()) == 2
    assert read.warnings == ["A balance is dated more than 60 days ahead and was set aside."]
    bank.bring([], statement=stated("985", "2026-11-18", "980", "2027-01-19"))
    assert balance(bank) == 980


@pytest.mark.requirement("import.days-ahead")
def test_a_balance_that_is_dated_ahead_ends_with_what_a_later_day_reports(bank: Bank) -> None:
    files = files_of(bank)
    files.bring([], statement=StatementRecord(closing=Decimal(990), closing_date=date(2026, 12, 31)))
    assert balance(bank) == 990
    bank.now += timedelta(days=1)
    bank.bring([], statement=StatementRecord(closing=Decimal(950), closing_date=bank.now.date()))
    assert balance(bank) == 950
    files.now += timedelta(days=2)
    files.bring([], statement=stated("950", "2026-12-30", "940", "2026-12-31"))
    assert balance(bank) == 940


@pytest.mark.requirement("import.days-ahead")
@pytest.mark.parametrize("is_live", [True, False])
def test_after_midnight_in_germany_todays_balance_counts_though_it_is_yesterday_in_utc(
    bank: Bank, *, is_live: bool
) -> None:
    files = files_of(bank)
    bank.now = files.now = datetime(2026, 11, 19, 20)  # noqa: DTZ001 - UTC, as the store keeps it
    day = date(2026, 11, 19) if is_live else date(2026, 11, 30)
    (bank if is_live else files).bring([], statement=StatementRecord(closing=Decimal(100), closing_date=day))
    files.now += timedelta(hours=3, minutes=30)
    files.bring([], statement=StatementRecord(closing=Decimal(90), closing_date=date(2026, 11, 20)))
    assert balance(bank) == 90


@pytest.mark.requirement("import.days-ahead")
def test_a_balance_ahead_that_an_older_version_stored_counts_no_more(bank: Bank) -> None:
    bank.bring([], statement=stated("1000", "2026-11-17", "990", "2026-11-18"))
    bank.database.execute(
        "INSERT INTO statements (user_id, account_id, batch_id, position, opening, opening_date, closing, closing_date,"
        " is_authoritative, connection_id, received_at) SELECT user_id, account_id, 'old', 0, 1, '2199-12-30', 1000000,"
        " '2199-12-31', TRUE, connection_id, received_at FROM statements"
    )
    bank.database.execute("UPDATE accounts SET balance = 1000000, balance_date = '2199-12-31'")
    bank.bring([], statement=stated("990", "2026-11-18", "980", "2026-11-19"))
    assert balance(bank) == 980
    assert entries(bank) == []


@pytest.mark.requirement("import.balance")
def test_a_balance_without_a_day_is_that_of_the_calendar_day_of_the_user(bank: Bank) -> None:
    flat: list[Record] = [GIRO, StatementRecord(closing=Decimal(100))]
    bank.store(read_batch(Batch(id="b", records=iter(flat)), today=date(2026, 11, 21)))
    (account,) = accounts.of_user(bank.database, bank.user.id)
    assert account.balance_date == date(2026, 11, 21)


@pytest.mark.requirement("decision 153")
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("opening", [{}, {"opening": None, "opening_date": None, "is_authoritative": False}])
def test_of_two_reports_of_one_day_the_one_with_all_of_its_bookings_has_the_balance(
    bank: Bank, opening: dict[str, object], order: Sequence[int]
) -> None:
    files = files_of(bank)
    known = "2026-11-20 | -10 | Cafe"
    noon = bookings(known), stated("100", "2026-11-19", "90", "2026-11-20")
    closing = stated("100", "2026-11-19", "70", "2026-11-20")
    evening = bookings(f"{known}\n2026-11-20 | -20 | Shop"), replace(closing, **opening)
    for booked, statement in ((noon, evening)[place] for place in order):
        files.bring(booked, statement=statement)
    assert balance(bank) == 70


@pytest.mark.requirement("decision 153")
@pytest.mark.parametrize(("closing", "counts"), [("90", "70"), ("89", "89")])
def test_an_export_whose_balance_lacks_what_it_does_not_tell_is_older_than_the_last_one(
    bank: Bank, closing: str, counts: str
) -> None:
    files = files_of(bank)
    known = "2026-11-19 | -10 | Cafe"
    evening = StatementRecord(closing=Decimal(70), closing_date=date(2026, 11, 20))
    files.bring(bookings(f"{known}\n2026-11-19 | -5 | Kiosk\n2026-11-20 | -15 | Shop"), statement=evening)
    files.now += timedelta(minutes=1)
    files.bring(bookings(known), statement=replace(evening, closing=Decimal(closing)))
    assert balance(bank) == Decimal(counts)


@pytest.mark.requirement("decision 153")
@pytest.mark.parametrize(
    ("told", "counts"),
    [
        ([("100", "90", "-10"), ("90", "80", "-10"), (None, None, "-10")], "80"),  # nobody states 70
        ([("100", "90", "-10"), ("90", "80", "-10"), (None, "70", "-10")], "70"),
        ([(None, "100", "-20"), ("100", "80", "-20")], "80"),
        ([("100", "120", "20"), ("120", "100", "-20"), ("100", "70", "-30"), (None, "60", "-10")], "60"),
    ],
)
def test_an_opening_balance_and_one_that_a_later_statement_opens_with_are_not_the_days(
    bank: Bank, told: Sequence[tuple[str | None, str | None, str]], counts: str
) -> None:
    files, day = files_of(bank), "2026-11-20"
    for place, (opening, closing, amount) in enumerate(told):
        said = stated(opening, day, closing, day) if opening and closing else None
        if said is None and closing is not None:
            said = StatementRecord(closing=Decimal(closing), closing_date=date(2026, 11, 20))
        files.bring(bookings(f"{day} | {amount} | Shop {place}"), statement=said)
        files.now += timedelta(minutes=1)
    assert balance(bank) == Decimal(counts)


@pytest.mark.requirement("import.balance")
def test_of_bare_balances_of_one_day_the_one_told_last_counts(bank: Bank) -> None:
    for closing in ("100", "50", "100", "100"):
        bank.bring([], statement=StatementRecord(closing=Decimal(closing), closing_date=date(2026, 11, 20)))
        bank.now += timedelta(hours=1)
        assert balance(bank) == Decimal(closing)
    assert len(bank.database.rows("SELECT closing FROM statements")) == 3


@pytest.mark.requirement("import.balance")
@pytest.mark.parametrize(("is_file", "left"), [(True, "50"), (False, "100")])
def test_a_file_that_comes_again_tells_no_balance_anew_and_a_live_source_does(
    bank: Bank, is_file: bool, left: str
) -> None:
    source = files_of(bank) if is_file else bank
    for id_, closing in (("a", "100"), ("b", "50"), ("a", "100")):
        said = StatementRecord(closing=Decimal(closing), closing_date=date(2026, 11, 20))
        source.bring([], statement=said, id_=id_)
        source.now += timedelta(hours=1)
    assert balance(bank) == Decimal(left)


@pytest.mark.requirement("import.balance")
def test_what_a_live_source_said_last_is_the_balance_until_the_statement_of_the_day_comes(bank: Bank) -> None:
    files = files_of(bank)
    files.bring(bookings("2026-11-20 | -50"), statement=stated("100", "2026-11-19", "50", "2026-11-20"))
    bank.now += timedelta(hours=1)
    bank.bring([], statement=StatementRecord(closing=Decimal(100), closing_date=date(2026, 11, 20)))
    assert balance(bank) == 100
    files.now = bank.now + timedelta(hours=1)
    interim = stated("100", "2026-11-19", "80", "2026-11-20", is_authoritative=False)
    files.bring([], statement=interim)
    assert balance(bank) == 100
    files.now += timedelta(hours=1)
    files.bring(bookings("2026-11-20 | -60"), statement=stated("100", "2026-11-19", "40", "2026-11-20"))
    assert balance(bank) == 40


@pytest.mark.requirement("import.pending")
def test_the_pending_twin_of_a_booked_row_books_under_an_id_of_its_own(bank: Bank) -> None:
    coffee = bookings("2026-11-02 | -2.80 | Cafe | Kaffee")
    bank.bring(coffee)
    bank.bring([replace(coffee[0], status="pending")] * 2, statement=StatementRecord(is_pending_complete=True))
    assert len(bank.rows(table="pending_transactions")) == 1
    bank.bring(coffee * 2)
    assert (len(bank.ids()), bank.rows(table="pending_transactions")) == (2, [])
