"""What matching makes of little: a file without a name or a booking, references that repeat, changes of one import."""

from collections.abc import Sequence
from contextlib import nullcontext
from datetime import date
from decimal import Decimal

import polars as pl
import pytest

from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from storage import journal
from storage.importing import ingest
from storage.importing.account_identity import AccountUnclear
from storage.importing.matching.exact_matches import prepare_bookings
from storage.importing.spool import Spool
from storage.importing.teller import FILES
from storage.importing.written_bookings import with_other_references
from tests.storage.conftest import Bank, bookings

NOBODY = AccountRecord(stable_key="unnamed", currency="EUR", is_anonymous=True)
DAY = date(2026, 11, 2)
CLOSING = StatementRecord(closing=Decimal("5"), closing_date=date(2026, 11, 19))


@pytest.mark.requirement("accounts.unclear")
def test_an_account_without_name_and_bookings_proves_nothing_for_the_next_file(bank: Bank) -> None:
    bank.bring([], account=NOBODY, statement=CLOSING)
    with pytest.raises(AccountUnclear) as refusal:
        bank.bring(bookings("2026-11-02 | -5.00 | A | a"), account=NOBODY)
    assert [account.stable_key for account in refusal.value.candidates] == ["unnamed"]


@pytest.mark.requirement("accounts.unclear")
def test_what_is_pending_alone_proves_nothing(bank: Bank) -> None:
    bank.bring(bookings("2026-11-02 | -5.00 | A | a"), account=NOBODY)
    with pytest.raises(AccountUnclear):
        bank.bring(bookings("2026-11-02 | -5.00 | A | a", status="pending"), account=NOBODY)


OF_DAY = bookings("2026-11-02 | -5.00 | A | a\n2026-11-02 | -7.00 | B | b")


@pytest.mark.requirement("accounts.unclear")
@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
@pytest.mark.parametrize("opening", [100, 0])
def test_a_day_told_at_noon_and_whole_is_of_one_unnamed_account_unless_it_begins_with_nothing(
    bank: Bank, order: Sequence[int], opening: int
) -> None:
    for place, known in enumerate(order):
        told = OF_DAY[:known]
        statement = StatementRecord(
            opening=Decimal(opening),
            opening_date=DAY,
            closing=Decimal(opening) + sum(each.amount for each in told),
            closing_date=DAY,
            is_authoritative=True,
        )
        with nullcontext() if opening or not place else pytest.raises(AccountUnclear):
            bank.bring(told, account=NOBODY, statement=statement)
    assert len(bank.ids()) == (2 if opening else order[0])


def record(*references: str) -> TransactionRecord:
    return TransactionRecord(
        amount=Decimal("-5"), currency="EUR", booking_date=date(2026, 11, 2), references=references
    )


@pytest.mark.requirement("import.references")
def test_a_booking_is_known_by_its_first_reference_that_no_other_of_the_batch_has() -> None:
    spool = Spool()
    for each in (record("order:1", "txid:A"), record("order:1", "txid:B"), record("order:1")):
        spool.add(each)
    keys = prepare_bookings(spool.keys([range(3)]), FILES)["base"].to_list()
    assert keys[:2] == ["txid:A|2026-11-02|-5", "txid:B|2026-11-02|-5"]
    assert keys[2].startswith("content:")


@pytest.mark.requirement("import.references")
def test_of_bookings_told_again_only_those_with_references_not_stored_yet_are_written() -> None:
    told = {"x": "servicer:1\x1ftxid:2", "y": "txid:2", "z": "txid:3", "w": ""}
    known = pl.DataFrame({"stored_id": list(told), "references": list(told.values())}).with_columns(
        stored_references=pl.lit('["servicer:1","txid:2"]')
    )
    assert with_other_references(known).rows() == [("z", '["servicer:1","txid:2","txid:3"]')]


@pytest.mark.requirement("journal")
@pytest.mark.parametrize(
    ("changes", "net"),
    [
        (["added"], "added"),
        (["added", "modified"], "added"),
        (["added", "removed"], None),
        (["removed", "added"], "modified"),
        (["modified", "removed"], "removed"),
        (["modified", "modified"], "modified"),
    ],
)
def test_the_journal_says_of_each_booking_what_an_import_has_done_to_it_in_all(
    changes: list[journal.Change], net: journal.Change | None
) -> None:
    other = journal.change_rows(["txn_2"], "added")
    found = ingest._each_once(pl.concat([other, *(journal.change_rows(["txn_1"], change) for change in changes)]))
    assert found.rows() == [("txn_2", "added"), *([] if net is None else [("txn_1", net)])]
