"""What a bank tells over its interface: ids that last, rows that repeat, bookings that a file has told before."""

from collections.abc import Callable
from datetime import date
from decimal import Decimal

import pytest
from msgspec import structs

from analytics.records import AccountRecord, StatementRecord
from storage import accounts, connections
from storage.undo_and_merge import merges, rebuild
from tests.storage.conftest import Bank, bookings, files_of

NewBank = Callable[..., Bank]


@pytest.mark.requirement("import.provider-id")
def test_one_id_twice_in_a_batch_is_one_booking_as_it_was_told_last(bank: Bank) -> None:
    report = bank.bring(
        bookings("""
        2026-11-02 | -5.00 | Shop | first page | provider_id=p1
        2026-11-03 | -7.00 | Cafe |            | provider_id=p2
        2026-11-02 | -5.00 | Shop | next page  | provider_id=p1
    """)
    )
    assert report.new_transactions == 2
    assert [row["purpose"] for row in bank.rows("purpose, booking_date, amount, id")] == ["next page", None]


@pytest.mark.requirement("import.provider-id")
def test_an_id_that_is_pending_and_booked_in_one_batch_is_booked(bank: Bank) -> None:
    (row,) = bookings("2026-11-02 | -5.00 | Shop | x | provider_id=p1")
    bank.bring([structs.replace(row, status="pending"), row])
    assert len(bank.ids()) == 1
    assert bank.rows("*", "pending_transactions") == []


@pytest.mark.requirement("import.provider-id")
@pytest.mark.parametrize(("first", "is_moved"), [("2026-11-01", True), ("2026-11-08", False)])
def test_a_known_id_that_is_told_no_more_on_its_day_has_moved(bank: Bank, first: str, is_moved: bool) -> None:
    bank.bring(bookings("2026-11-02 | -5.00 | Shop | x | provider_id=p1"))
    before = bank.ids()
    said = StatementRecord(told_from=date.fromisoformat(first), told_until=date(2026, 11, 20))
    report = bank.bring(bookings("2026-11-19 | -5.00 | Shop | x | provider_id=p1"), statement=said)
    assert report.new_transactions == int(not is_moved)
    assert (bank.ids() == before) is is_moved


@pytest.mark.requirement("import.file-then-live")
@pytest.mark.parametrize(
    ("told", "again"),
    [
        ("2026-11-02 | -5.00 | Shop | Brot", "2026-11-02 | -5.00 | Shop | Brot | provider_id=p1"),
        ("2026-11-02 | -5.00 | Shop | Brot", "2026-11-02 | -5.00 | SHOP | Karte 1234 | provider_id=p1"),
        (
            "2026-11-02 | -5.00 | Shop | Brot | references=servicer:7",
            "2026-11-02 | -5.00 | Karte | Other | provider_id=p1; references=servicer:7",
        ),
    ],
    ids=["same content", "same counterpart", "same reference"],
)
def test_a_new_id_claims_the_booking_that_a_file_has_told(bank: Bank, told: str, again: str) -> None:
    files = files_of(bank)
    files.bring(bookings(told))
    before = bank.ids()
    for _ in range(2):
        report = bank.bring(bookings(again))
        assert (report.new_transactions, report.changes.rows()) == (0, [])
    assert files.bring(bookings(told)).new_transactions == 0
    assert bank.ids() == before
    corrected = again.replace("-5.00", "-5.50")
    october = StatementRecord(told_from=date(2026, 10, 1), told_until=date(2026, 11, 20))
    report = bank.bring(bookings(corrected), statement=october)
    assert [change for _, change in report.changes.rows()] == ["modified"]
    assert bank.ids() == before
    assert bank.bring(bookings(corrected), statement=october).changes.rows() == []


@pytest.mark.requirement("import.file-then-live")
def test_claims_are_counted_and_a_row_is_claimed_by_one_id_of_a_source(bank: Bank) -> None:
    coffee = "2026-11-02 | -2.80 | Cafe | Kaffee"
    files_of(bank).bring(bookings(coffee) * 2)
    both = bookings(f"{coffee} | provider_id=p1\n{coffee} | provider_id=p2")
    assert bank.bring(both).new_transactions == 0
    third = bookings(f"{coffee} | provider_id=p3")
    assert bank.bring(third).new_transactions == 1
    assert bank.bring([*third, *both]).new_transactions == 0
    assert len(bank.ids()) == 3


@pytest.mark.requirement("import.file-then-live")
@pytest.mark.parametrize(
    "other",
    [
        "2026-11-03 | -5.00 | Shop | Brot",
        "2026-11-02 | -5.01 | Shop | Brot",
        "2026-11-02 | -5.00 | Cafe | Kuchen",
        "2026-11-02 | -5.00 | | Kuchen",
    ],
    ids=["another day", "another amount", "another counterpart", "no counterpart"],
)
@pytest.mark.sampled
def test_a_new_id_claims_no_other_booking(bank: Bank, other: str) -> None:
    files_of(bank).bring(bookings("2026-11-02 | -5.00 | Shop | Brot"))
    assert bank.bring(bookings(f"{other} | provider_id=p1")).new_transactions == 1


@pytest.mark.requirement("import.file-then-live")
@pytest.mark.parametrize("is_file_first", [True, False])
def test_a_booking_without_an_id_is_the_one_of_its_counterpart_that_another_source_words_otherwise(
    bank: Bank, is_file_first: bool
) -> None:
    files, card, shop = files_of(bank), "2026-11-02 | -5.00 | Shop | Karte 1234", "2026-11-02 | -5.00 | SHOP | Brot"
    told = [(files, card), (bank, shop)]
    (first, words), (second, other_words) = told if is_file_first else reversed(told)
    first.bring(bookings(words) * 2)
    before = bank.ids()
    for _ in range(2):
        assert second.bring(bookings(other_words) * 2).changes.rows() == []
        assert first.bring(bookings(words) * 2).changes.rows() == []
    assert bank.ids() == before
    assert second.bring(bookings(other_words) * 3).new_transactions == 1
    assert second.bring(bookings(other_words) * 3).changes.rows() == []


@pytest.mark.requirement("import.file-then-live")
@pytest.mark.parametrize(
    ("file", "bank_says"),
    [
        ("2026-11-02 | -5.00 | Shop | Karte", "2026-11-02 | -5.00 | Cafe | Brot"),
        ("2026-11-02 | -5.00 | Shop | Karte", "2026-11-02 | -5.00 |      | Brot"),
        ("2026-11-02 | -5.00 | Shop | Karte", "2026-11-03 | -5.00 | Shop | Brot"),
        ("2026-11-02 | -5.00 | Shop | Karte | references=s:1", "2026-11-02 | -5.00 | Shop | Brot | references=s:2"),
    ],
    ids=["another counterpart", "no counterpart", "another day", "another reference of one kind"],
)
@pytest.mark.sampled
def test_a_booking_without_an_id_is_no_other_one(bank: Bank, file: str, bank_says: str) -> None:
    files_of(bank).bring(bookings(file))
    assert bank.bring(bookings(bank_says)).new_transactions == 1


@pytest.mark.requirement("import.file-then-live")
def test_references_that_all_differ_keep_nothing_apart_however_a_file_writes_its_words(bank: Bank) -> None:
    told = "2026-11-02 | -5 | Köln | Brötchen | references=s:{}1\n2026-11-03 | -6 | Müller | Öl | references=s:{}2"
    bank.bring(bookings(told.format("a", "a")))
    written_out = told.replace("ö", "oe").replace("ü", "ue").replace("Ö", "Oe")
    assert files_of(bank).bring(bookings(written_out.format("b", "b"))).new_transactions == 0


@pytest.mark.requirement("import.file-then-live")
@pytest.mark.parametrize("is_any_shared", [True, False])
@pytest.mark.parametrize("oil", ["Öl", "OEL"])
@pytest.mark.sampled
def test_a_reference_of_a_file_sets_equal_words_apart_if_others_agree_with_those_of_the_bank(
    bank: Bank, is_any_shared: bool, oil: str
) -> None:
    shop, tea = "2026-11-02 | -5.00 | Shop | {} | references={}", "2026-11-05 | -1.00 | Cafe | Tee | references=s:9"
    bank.bring(bookings(f"{shop.format('Öl', 's:1')}\n{tea}"))
    told = f"{shop.format(oil, 's:2')}\n{tea if is_any_shared else ''}"
    assert files_of(bank).bring(bookings(told)).new_transactions == is_any_shared


@pytest.mark.requirement("import.file-then-live")
def test_references_of_files_that_agree_among_themselves_set_nothing_apart_of_what_the_bank_alone_has_told(
    bank: Bank,
) -> None:
    files = files_of(bank)
    older = "2026-11-02 | -5 | Shop | Brot | references=servicer:R{}"
    files.bring(bookings(older.format(1)))
    bank.bring(bookings("2026-11-09 | -8 | Cafe | Kaffee | references=servicer:13"))
    again = bookings(older.format(1) + "\n2026-11-09 | -8 | Cafe | Kaffee | references=servicer:R2")
    assert files.bring(again).new_transactions == 0
    assert files.bring(bookings(older.format(3))).new_transactions == 1


@pytest.mark.requirement("import.file-then-live")
@pytest.mark.parametrize("is_file_first", [True, False])
@pytest.mark.parametrize("number", ["", " | provider_id=8"], ids=["without ids", "with ids"])
@pytest.mark.sampled
def test_a_reference_of_a_file_says_nothing_of_a_row_that_files_have_told_without_one(
    bank: Bank, number: str, is_file_first: bool
) -> None:
    files, bread = files_of(bank), "2026-11-02 | -5 | Shop | Brot"
    told = [(files, bread + number), (bank, f"{bread} | references=servicer:b1")]
    for source, words in told if is_file_first else reversed(told):
        source.bring(bookings(words))
    assert files.bring(bookings(f"{bread} | references=servicer:R1")).new_transactions == 0
    assert len(bank.ids()) == 1


@pytest.mark.requirement("import.file-then-live")
def test_a_file_with_references_of_its_own_is_known_when_it_comes_again(bank: Bank) -> None:
    shop = "2026-11-02 | -5.00 | Shop | Brot | references=s:{}1\n2026-11-03 | -6.00 | Cafe | Torte | references=s:{}2"
    kiosk = "2026-11-04 | -1.00 | Kiosk | Zeitung | references=s:b3"
    bank.bring(bookings(shop.format("a", "a")))
    for news in (1, 0):
        assert files_of(bank).bring(bookings(f"{shop.format('b', 'b')}\n{kiosk}")).new_transactions == news


@pytest.mark.requirement("import.file-then-live")
def test_a_file_that_tells_a_booking_in_the_words_of_the_bank_finds_it_under_those_of_an_earlier_file(
    bank: Bank,
) -> None:
    files, corrected = files_of(bank), "2026-11-02 | -5.00 | Shop | Berichtigung"
    files.bring(bookings("2026-11-02 | -5.00 | Shop | Brot"))
    assert bank.bring(bookings(f"{corrected} | provider_id=1")).new_transactions == 0
    assert files.bring(bookings(corrected)).new_transactions == 0


@pytest.mark.requirement("import.file-then-live")
def test_one_source_that_words_a_booking_otherwise_tells_another_one(bank: Bank) -> None:
    for source in (files_of(bank), bank):
        source.bring(bookings("2026-11-02 | -5.00 | Shop | Karte"))
    assert len(bank.ids()) == 1
    assert files_of(bank).bring(bookings("2026-11-02 | -5.00 | Shop | Brot")).new_transactions == 1
    assert bank.bring(bookings("2026-11-02 | -5.00 | Shop | Brot")).new_transactions == 0


@pytest.mark.requirement("import.file-then-live")
def test_a_source_that_tells_whole_days_and_tells_a_booking_in_other_words_tells_it_once(bank: Bank) -> None:
    whole = StatementRecord(are_days_complete=True)
    bank.bring(
        bookings("""
        2026-11-02 | -2.80 | Cafe | Kaffee
        2026-11-02 | -2.80 | Cafe | Kaffee
        2026-11-03 | -5.00 | Shop | Brot
    """),
        statement=whole,
    )
    before = bank.ids()
    again = """
        2026-11-02 | -2.80 | Cafe        | Kaffee
        2026-11-02 | -2.80 | Kaffeehaus  | Ihr Einkauf
        2026-11-03 | -5.00 | Supermarkt  | Karte 1234
    """
    for _ in range(2):
        assert bank.bring(bookings(again), statement=whole).new_transactions == 0
        assert bank.ids() == before
    more = """
        2026-11-02 | -2.80 | Bar   | Espresso
        2026-11-03 | -5.01 | Shop  | Brot
        2026-11-04 | -5.00 | Shop  | Brot
    """
    assert bank.bring(bookings(again + more), statement=whole).new_transactions == 3
    assert len(bank.ids()) == 6
    assert before < bank.ids()


@pytest.mark.requirement("import.file-then-live")
def test_a_source_that_may_leave_out_bookings_of_a_day_tells_another_one(bank: Bank) -> None:
    bank.bring(bookings("2026-11-03 | -5.00 | Shop | Brot"))
    assert bank.bring(bookings("2026-11-03 | -5.00 | Supermarkt | Karte 1234")).new_transactions == 1


@pytest.mark.requirement("import.provider-id")
def test_ids_of_two_banks_are_two_name_spaces(new_bank: NewBank) -> None:
    one, other = new_bank("eva", "One"), new_bank("eva", "Other")
    one.bring(bookings("2026-11-02 | -5.00 | Shop | x | provider_id=17"))
    report = other.bring(bookings("2026-11-05 | -80.00 | Rent | y | provider_id=17"))
    assert report.new_transactions == 1
    assert one.bring(bookings("2026-11-02 | -5.00 | Shop | x | provider_id=17")).changes.rows() == []
    assert other.bring(bookings("2026-11-05 | -81.00 | Rent | y | provider_id=17")).new_transactions == 0
    assert sorted(row["amount"] for row in one.rows("amount, booking_date, id")) == [Decimal(-81), Decimal(-5)]


WHOLE_NOVEMBER = StatementRecord(told_from=date(2026, 11, 1), told_until=date(2026, 11, 20))
TOLD_FIRST = "2026-11-02 | -5.00 | Hausverwaltung Mueller GmbH | Miete Wohnung 12"
CORRECTED = "2026-11-02 | -5.00 | Hausverwaltung Mueller GmbH | 7429239378 Berichtigung der Miete"


@pytest.mark.requirement("import.file-then-live")
def test_a_file_that_cuts_the_words_of_a_bank_finds_them_under_those_of_an_earlier_file(bank: Bank) -> None:
    files = files_of(bank)
    files.bring(bookings(TOLD_FIRST))
    assert bank.bring(bookings(CORRECTED, provider_id="v1"), statement=WHOLE_NOVEMBER).new_transactions == 0
    assert files.bring(bookings("2026-11-02 | -5.00 | Hausverwalt | 7429239378 Bericht")).new_transactions == 0
    assert files.bring(bookings("2026-11-02 | -5.00 | Hausverwalt | 8000000001 Bericht")).new_transactions == 1


@pytest.mark.requirement("import.provider-id")
@pytest.mark.parametrize("texts", [("BEITRAG", "BEITRAG ANNA"), ("BEITRAG ANNA", "BEITRAG")])
@pytest.mark.parametrize("is_live", [True, False])
def test_of_two_bookings_one_of_whose_texts_begins_like_the_other_each_is_found_in_its_own(
    bank: Bank, new_bank: NewBank, is_live: bool, texts: tuple[str, ...]
) -> None:
    bank.bring(bookings("2026-11-01 | -9 | Verein | Beitrag\n2026-11-01 | -9 | Verein | Beitrag Anna"))
    before = bank.rows("id, purpose, booking_date, amount")
    other = new_bank(bank_name="Second bank") if is_live else files_of(bank)
    other.bring(
        bookings("\n".join(f"2026-11-01 | -9 | VEREIN | {each}" for each in texts), value_date=date(2026, 11, 1))
    )
    assert bank.rows("id, purpose, booking_date, amount") == before


def test_two_banks_that_tell_one_booking_correct_only_what_they_told_themselves(new_bank: NewBank) -> None:
    one, other = new_bank("eva", "One"), new_bank("eva", "Other")
    one.bring(bookings("2026-11-02 | -5.00 | Shop | x | provider_id=a"))
    assert other.bring(bookings("2026-11-02 | -5.00 | Shop | y | provider_id=b")).new_transactions == 0
    assert one.bring(bookings("2026-11-02 | -5.00 | Shop | x | provider_id=a")).changes.rows() == []
    report = other.bring(bookings("2026-11-02 | -5.00 | Shop | z | provider_id=b"))
    assert [change for _, change in report.changes.rows()] == ["modified"]
    assert one.bring(bookings("2026-11-02 | -5.00 | Shop | x | provider_id=a")).changes.rows() == []
    assert [row["purpose"] for row in one.rows("purpose, booking_date, amount, id")] == ["z"]


def rebuild_again(bank: Bank, account_id: str) -> None:
    one = {account_id}
    bank.database.atomically(
        lambda session: rebuild.rebuild(session, user=bank.user, account_ids=one, job_id="again", now=bank.now)
    )


IBAN, NEW_IBAN = "DE02120300000000202051", "DE02500105170137075030"


def giro(iban: str | None) -> AccountRecord:
    """The account that the source calls 17, with the IBAN that it names today."""
    return AccountRecord(stable_key="17", iban=iban, currency="EUR", name="Giro")


@pytest.mark.requirement("import.account-key")
@pytest.mark.parametrize(
    "named", [(None, IBAN), (IBAN, None), (IBAN, NEW_IBAN), (IBAN, None, NEW_IBAN)], ids=["later", "gone", "new", "all"]
)
@pytest.mark.sampled
def test_an_account_of_a_live_source_stays_one_whatever_iban_the_source_names(
    bank: Bank, named: tuple[str | None, ...]
) -> None:
    for number, iban in enumerate(named, start=1):
        bank.bring(bookings(f"2026-11-0{number} | -5.00 | Shop | x | provider_id=p{number}"), account=giro(iban))
    stated = [iban for iban in reversed(named) if iban]
    for again in range(2):
        (account,) = accounts.of_user(bank.database, bank.user.id)
        assert account.ibans == stated
        told = bookings(f"2026-11-1{again} | -6.00 | Shop | x")
        job = files_of(bank).bring(
            told, account=AccountRecord(stable_key="file", iban=stated[again - 1], currency="EUR")
        )
        assert {each.account_id for each in job.accounts} == {account.id}
        rebuild_again(bank, account.id)
    assert len(bank.ids()) == len(named) + 2


@pytest.mark.requirement("import.account-key")
def test_one_key_of_two_connections_is_two_accounts(new_bank: NewBank) -> None:
    one, other = new_bank("eva", "One"), new_bank("eva", "Other")
    for bank in (one, other):
        bank.bring(bookings("2026-11-02 | -5.00 | Shop | x | provider_id=p1"), account=giro(None))
    assert len(accounts.of_user(one.database, one.user.id)) == 2


@pytest.mark.requirement("import.account-key")
@pytest.mark.long
def test_an_account_that_was_merged_is_met_in_the_other_one_and_one_that_was_deleted_comes_back(bank: Bank) -> None:
    files_of(bank).bring(bookings("2026-11-01 | -1.00 | Shop | x"), account=giro(NEW_IBAN))
    bank.bring(bookings("2026-11-02 | -5.00 | Shop | x | provider_id=p1"), account=giro(IBAN))
    target, source = (each.id for each in accounts.of_user(bank.database, bank.user.id))
    bank.database.execute("UPDATE accounts SET iban = NULL WHERE id = $1", target)
    bank.database.atomically(
        lambda session: merges.merge(session, user=bank.user, source_id=source, target_id=target, now=bank.now)
    )
    bank.bring(bookings("2026-11-03 | -6.00 | Shop | x | provider_id=p2"), account=giro(None))
    assert [each.id for each in accounts.of_user(bank.database, bank.user.id)] == [target]
    bank.database.atomically(lambda session: rebuild.delete(session, user=bank.user, account_id=target, now=bank.now))
    assert accounts.of_user(bank.database, bank.user.id) == []
    bank.bring(bookings("2026-11-04 | -7.00 | Shop | x | provider_id=p3"), account=giro(IBAN))
    assert len(accounts.of_user(bank.database, bank.user.id)) == 1


@pytest.mark.requirement("import.account-key")
def test_the_bank_of_a_deleted_account_is_asked_for_everything_and_no_other_bank(bank: Bank, new_bank: NewBank) -> None:
    other = new_bank(bank.user.name, "Other")
    other.bring(bookings("2026-11-01 | -1.00 | Shop | x"), account=giro(NEW_IBAN))
    bank.bring(bookings("2026-11-02 | -5.00 | Shop | x"), account=giro(IBAN))
    for each in (bank, other):
        connections.keep_cursor(bank.database, bank.user.id, each.connection.id, {"day": "2026-11-02"})
    (deleted,) = (each.id for each in accounts.of_user(bank.database, bank.user.id) if each.iban == IBAN)
    bank.database.atomically(lambda session: rebuild.delete(session, user=bank.user, account_id=deleted, now=bank.now))
    kept = [connections.find(bank.database, bank.user.id, each.connection.id) for each in (bank, other)]
    assert [each.cursor for each in kept if each is not None] == [None, {"day": "2026-11-02"}]
