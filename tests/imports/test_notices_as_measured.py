"""What tests/benchmarks/notices.py finds in an invented household is what a server tells it."""

from datetime import timedelta
from typing import Any

import pytest

from analytics.records import StatementRecord, TransactionRecord
from storage.events import outbox
from storage.notices import stored
from tests.benchmarks.invented_households import YEAR, Household, balances_of
from tests.benchmarks.notices import Looks
from tests.imports.household import Household as Store
from tests.imports.test_change_feed import GIRO, booked
from tests.imports.test_notices import Noticed, look

TOLD = (
    "creditor_id",
    "mandate_reference",
    "bank_transaction_code",
    "is_return",
    "original_amount",
    "original_currency",
)
WEEKS = 20


def record(row: dict[str, Any]) -> TransactionRecord:
    further = {name: row[name] for name in TOLD if name in row}
    return booked(
        *(row["booking_date"], row["amount"], row["counterpart_name"], row["purpose"]), gvc=row["gvc"], **further
    )


@pytest.mark.long
@pytest.mark.requirement("notices.kinds")
@pytest.mark.parametrize("number", [0, 12, 16])
def test_a_server_tells_an_invented_household_what_is_measured(eva: Store, number: int) -> None:
    household = Household(number, 1, is_quiet=False)
    asked, balances = household.asked[:WEEKS], balances_of(household)
    measured = Looks([household])
    for day in asked:
        measured.look([household], day)
    home, before = Noticed(eva), YEAR - timedelta(days=400)
    for day in asked:
        home.becomes(day)
        said = StatementRecord(closing=balances[day], closing_date=day)
        rows = [row for row in household.rows if before < row["booking_date"] <= day]
        home.bring(GIRO, *map(record, rows), statement=said)
        look(home)
        before = day
    every = outbox.after(eva.services.everybody, eva.user.id, -1, limit=1000)
    ids = {each.subject for each in every if each.type == "notice.new"}
    told = [one for id_ in ids if (one := stored.find(eva.services.everybody, eva.user.id, id_)) is not None]
    kinds = {finding.kind for _, finding in measured.told[household.id]}
    assert kinds
    assert sorted((one.kind, one.day) for one in told if one.interrupts and one.kind != "ledger.wrong") == sorted(
        (finding.kind, finding.day) for _, finding in measured.told[household.id]
    )
