"""Explanations are read from one state of the store: they add up while imports come in."""

import threading
from datetime import date, timedelta
from decimal import Decimal

import pytest

from analytics.records import AccountRecord, TransactionRecord
from tests.explanations.conftest import Holder

IMPORTS = 25
GIRO = AccountRecord(stable_key="DE02120300000000202051", iban="DE02120300000000202051", currency="EUR")


def weekly(number: int) -> list[TransactionRecord]:
    """A charge of the same payee every week, and money that comes in."""
    day = date(2026, 6, 1) + timedelta(days=7 * number)
    said = {"counterpart_name": "Gemüsekiste", "mandate_reference": "M-7", "creditor_id": "DE98ZZZ09999999999"}
    return [
        TransactionRecord(amount=Decimal("-24.50"), currency="EUR", booking_date=day, **said),  # type: ignore[arg-type]  # texts
        TransactionRecord(
            amount=Decimal("100.10"), currency="EUR", booking_date=date(2026, 11, 2), purpose=str(number)
        ),
    ]


@pytest.mark.no_cover  # many answers, see tests/conftest.py
@pytest.mark.requirement("explanations.add-up")
@pytest.mark.long
def test_every_answer_adds_up_while_imports_come_in(holder: Holder) -> None:
    holder.bring(GIRO, weekly(0))

    def bring_the_others() -> None:
        for number in range(1, IMPORTS):
            holder.bring(GIRO, weekly(number))

    importing = threading.Thread(target=bring_the_others)
    importing.start()
    seen: set[int] = set()
    while importing.is_alive():
        month = holder.get("/cashflow/2026-11/transactions")
        counted = sum((Decimal(repr(row["countedAmount"])) for row in month["transactions"]), Decimal(0))
        assert counted == Decimal(repr(month["net"]))
        seen.add(len(month["transactions"]))
        for told in holder.get("/subscriptions/details")["subscriptions"]:
            assert told["lastCharged"] == told["charges"][-1]["bookingDate"]
            assert told["occurrences"] == sum(charge["isOccurrence"] for charge in told["charges"])
    importing.join()
    assert len(seen) > 1
    assert len(holder.get("/subscriptions/details")["subscriptions"][0]["charges"]) == IMPORTS
