"""Cash is one payee: one correction or rule is about all of it."""

from typing import Any

import pytest

from analytics.classification.rules import ChosenCategory
from analytics.records import TransactionRecord
from storage import rules
from tests.explanations.conftest import Holder, Service
from tests.words.conftest import GIRO, booked, by_name, rows_of, writer
from tests.words.test_words_portable import exported, read

IBAN = "DE02370502990000684712"


def slip(day: str, **further: Any) -> TransactionRecord:
    return booked(day, "-50", f"GA NR0000210{day} BLZ3705019{day}", bank_transaction_code="PMNT-CCRD-CWDL", **further)


def categories(holder: Holder) -> list[str]:
    return [row["category"] for row in rows_of(holder, sort="bookingDate")]


@pytest.mark.requirement("corrections")
def test_one_correction_fits_all_cash_past_and_future_until_it_is_undone(service: Service, holder: Holder) -> None:
    client = writer(holder)
    holder.bring(
        GIRO, [slip("10"), slip("11", counterpart_iban=IBAN), booked("12", "-9", "Kita", counterpart_iban=IBAN)]
    )
    chosen = {"transactionId": rows_of(holder, sort="bookingDate")[1]["id"], "category": "DINING"}
    tried = client.post("/corrections?dryRun=true", json=chosen).json()
    made = client.post("/corrections", json=chosen).json()
    assert (tried, made["name"], made["matching"], made["changed"]) == (made, "Cash", 2, 2)
    holder.bring(GIRO, [slip("13")])
    assert categories(holder) == ["DINING", "DINING", "OTHER", "DINING"]
    (listed,) = client.get("/corrections").json()["corrections"]
    assert listed == {"id": made["id"], "name": "Cash", "category": "DINING", "matching": 3}
    other = service.newcomer()
    assert read(other, exported(holder)) == 1
    other.bring(GIRO, [slip("14")])
    assert categories(other) == ["DINING"]
    assert client.delete(f"/corrections/{made['id']}").json() == {"changed": 3}
    assert categories(holder) == ["OTHER"] * 4


@pytest.mark.requirement("words.rules")
def test_a_rule_made_from_a_slip_is_about_all_cash(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(
        GIRO, [slip("10", counterpart_iban=IBAN), slip("11"), booked("12", "-9", "Kita", counterpart_iban=IBAN)]
    )
    rule = client.get(f"/transactions/{rows_of(holder, sort='bookingDate')[0]['id']}/rule").json()
    assert rule == {"field": "merchantName", "operator": "equals", "value": "Cash", "category": "OTHER"}
    assert client.post("/rules", json={**rule, "category": "HEALTH"}).json()["changed"] == 2
    assert categories(holder) == ["HEALTH", "HEALTH", "OTHER"]


@pytest.mark.requirement("corrections")
def test_a_correction_of_one_slip_from_before_stays_until_cash_is_corrected(holder: Holder) -> None:
    client, services = writer(holder), holder.service.services
    services.change(
        holder.user.id,
        lambda session: rules.correct(
            session, holder.user.id, "name:ga nr000021010 blz370501910", ChosenCategory("RENT")
        ),
    )
    holder.bring(GIRO, [slip("10"), slip("11")])
    assert categories(holder) == ["RENT", "OTHER"]
    assert [each["name"] for each in client.get("/corrections").json()["corrections"]] == [
        "GA NR000021010 BLZ370501910"
    ]
    chosen = {"transactionId": by_name(holder)["GA NR000021011 BLZ370501911"]["id"], "category": "DINING"}
    assert client.post("/corrections", json=chosen).json()["matching"] == 2
    assert categories(holder) == ["DINING", "DINING"]
