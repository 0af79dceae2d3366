"""Rules changed in their place, ordered, and made from a booking; what they change is shown before."""

import pytest

from tests.explanations.conftest import Holder
from tests.words.conftest import GIRO, booked, by_name, writer

KITA = {"field": "counterpartName", "operator": "contains", "value": "kita", "category": "HEALTH"}


@pytest.mark.requirement("words.rules")
@pytest.mark.long
def test_a_rule_is_edited_in_its_place(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-9.00", "Kita"), booked("11", "-1.00", "Pflaume")])
    client.post("/rules", json=KITA)
    client.post("/rules", json={**KITA, "value": "x"})
    tried = client.patch("/rules/1?dryRun=true&include=transactions", json={"value": "pflaume"}).json()
    assert (tried["id"], tried["value"], tried["changed"]) == ("1", "pflaume", 2)
    assert [(row["before"]["category"], row["after"]["category"]) for row in tried["transactions"]] == [
        (by_name(holder)["Pflaume"]["category"], "HEALTH"),
        ("HEALTH", by_name(holder)["Pflaume"]["category"]),
    ]
    assert by_name(holder)["Kita"]["category"] == "HEALTH"
    kept = client.patch("/rules/1", json={"value": "pflaume", "category": None, "merchant": "Plum"}).json()
    assert kept == {
        **{**KITA, "value": "pflaume", "category": None},
        "id": "1",
        "merchant": "Plum",
        "type": None,
        "changed": 2,
    }
    assert by_name(holder)["Pflaume"]["merchantName"] == "Plum"
    assert [rule["id"] for rule in client.get("/rules").json()["rules"]] == ["1", "2"]
    nothing = client.patch("/rules/1", json={"merchant": None})
    assert (nothing.status_code, nothing.json()) == (
        400,
        {"error": "body: nothing to do: give category, merchant, type or tags"},
    )
    ignored = client.patch("/rules/1", json={"id": "9", "colour": "red", "value": "Pflaume"}).json()
    assert (ignored["id"], ignored["value"]) == ("1", "Pflaume")
    assert client.patch("/rules/7", json={"value": "y"}).json() == {"error": "Rule not found"}


@pytest.mark.requirement("words.rules")
@pytest.mark.long
def test_rules_are_asked_in_the_order_that_is_said(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    for category in ("HEALTH", "DINING"):
        client.post("/rules", json={**KITA, "category": category})
    assert client.put("/rules/order?dryRun=true", json={"ids": ["2", "1"]}).json() == {"changed": 1}
    assert by_name(holder)["Kita"]["category"] == "HEALTH"
    told = client.put("/rules/order?include=transactions", json={"ids": ["2", "1"]}).json()
    assert [row["after"]["category"] for row in told["transactions"]] == ["DINING"]
    assert by_name(holder)["Kita"]["category"] == "DINING"
    for ids in (["1"], ["1", "2", "2"], ["1", "2", "3"]):
        assert client.put("/rules/order", json={"ids": ids}).json() == {
            "error": "ids: must name every rule once. GET /rules lists them"
        }


@pytest.mark.requirement("words.rules")
@pytest.mark.long
def test_a_rule_is_made_from_a_booking(holder: Holder) -> None:
    client, creditor, iban = writer(holder), "DE98ZZZ09999999999", "DE02370502990000684712"
    long = "L" * 250
    holder.bring(
        GIRO,
        [
            booked("10", "-9.00", "Verein", creditor_id=creditor, counterpart_iban=iban),
            booked("11", "-9.00", "Kita", counterpart_iban=iban),
            booked("12", "-9.00", "REWE Markt"),
            booked("13", "-9.00", "PayPal Europe", counterpart_iban=iban, creditor_id=creditor),
            booked("14", "-9.00", long),
            booked("15", "-9.00"),
        ],
    )
    rows = by_name(holder)

    def proposed(name: str | None) -> dict[str, str]:
        made: dict[str, str] = client.get(f"/transactions/{rows[name or '']['id']}/rule").json()
        return made

    assert (proposed("Verein")["field"], proposed("Verein")["value"]) == ("counterpartCreditorId", creditor)
    assert (proposed("Kita")["field"], proposed("Kita")["value"]) == ("counterpartIban", iban)
    assert proposed("REWE Markt") == {
        "field": "merchantName",
        "operator": "equals",
        "value": rows["REWE Markt"]["merchantName"],
        "category": "GROCERIES",
    }
    assert proposed("PayPal Europe")["field"] in ("merchantName", "counterpartName")
    assert (proposed(long)["operator"], len(proposed(long)["value"])) == ("startswith", 200)
    for name in ("Kita", long):
        assert client.post("/rules?dryRun=true", json=proposed(name)).status_code == 200
    own_id = client.post("/categories", json={"name": "Brot", "category": "GROCERIES"}).json()["id"]
    finer = {"category": "DINING", "detailedCategory": "CAFE"}
    for name, said, place in (
        ("Kita", {"detailedCategory": "CAFE"}, finer),
        ("REWE Markt", {"ownCategoryId": own_id}, {"category": "GROCERIES", "ownCategoryId": own_id}),
    ):
        client.patch(f"/transactions/{rows[name]['id']}/annotation", json=said)
        rule = proposed(name)
        assert {key: rule[key] for key in rule if key not in ("field", "operator", "value")} == place
        kept = client.post("/rules", json=rule).json()
        assert {key: kept[key] for key in place} == place
    nameless = client.get(f"/transactions/{rows[None]['id']}/rule")  # type: ignore[index]
    assert nameless.status_code == 404
    assert client.get("/transactions/txn_unknown/rule").json() == {"error": "Transaction not found"}


@pytest.mark.requirement("words.rules")
@pytest.mark.long
def test_who_may_not_read_bookings_is_shown_none_by_a_rule(holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    client = writer(holder, ["write:rules"])
    assert client.post("/rules?dryRun=true", json=KITA).json()["changed"] == 1
    refused = client.post("/rules?dryRun=true&include=transactions", json=KITA)
    assert (refused.status_code, refused.json()) == (403, {"error": "Insufficient scope. Required: read:transactions"})
    asked = {"transactionId": by_name(holder)["Kita"]["id"], "category": "RENT"}
    assert writer(holder).post("/corrections?dryRun=true&include=transactions", json=asked).status_code == 200
