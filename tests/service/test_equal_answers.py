"""The demo bank on both engines: every answer is the same, but for the moments and random ids of its making."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from auth.scopes import ALL_SCOPES
from tests.engines import ENGINE
from tests.service.conftest import Json, account_ids, get, running

pytestmark = pytest.mark.engine("postgresql")

CONTRACT = Path(__file__).parents[2] / "openapi.json"
OF_THE_MAKING = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d[^\"<]*|20\d{12}|syn_[0-9a-f]+|u[0-9a-f]{20}")
CSV = "Buchungstag;Valuta;Auftraggeber/Empfänger;Verwendungszweck;Betrag;Währung\n" + "".join(
    f"{day:02}.03.2026;{day:02}.03.2026;Bäckerei {day % 3};Brot;-{day},50;EUR\n" for day in range(1, 29)
)
FORMATS = ("csv", "jsonl", "camt053", "ofx", "beancount")  # parquet is compressed, moments and all


def changed(client: httpx.Client) -> str:
    """A file, a correction and a rule, so that there is something to be listed; the id of the import."""
    sent = client.post(
        "/imports", params={"filename": "a.csv"}, content=CSV, headers={"content-type": "application/octet-stream"}
    ).json()
    while sent["status"] == "running":
        sent = get(client, f"/imports/{sent['importId']}")
    assert sent["new"] == 28, sent
    found = get(client, "/transactions", search="Bäckerei 1", **selection(client))["transactions"]
    corrected = client.post("/corrections", json={"transactionId": found[0]["id"], "category": "DINING"})
    rule = {"field": "counterpartName", "operator": "contains", "value": "Bäckerei 2", "category": "SHOPPING"}
    kept = client.post("/rules", json=rule)
    assert (corrected.status_code, kept.status_code) == (200, 200), (corrected.text, kept.text)
    said = client.patch(f"/transactions/{found[0]['id']}/annotation", json={"note": "one", "tags": ["Two"]})
    assert said.status_code == 200, said.text
    row = next(row for row in found[1:] if row["amount"] < -1)
    rest = round(row["amount"] + 1, 2)
    parts = [{"amount": -1, "detailedCategory": "BAKERY"}, {"amount": rest, "category": "SHOPPING"}]
    divided = client.patch(f"/transactions/{row['id']}/annotation", json={"splits": parts})
    assert divided.status_code == 200, divided.text
    for place, period in (("GROCERIES", "month"), ("OTHER", "year")):
        target = client.put("/targets", json={"category": place, "amount": 400, "period": period, "from": "2026-03"})
        assert target.status_code == 200, target.text
    return str(sent["importId"])


def selection(client: httpx.Client) -> Json:
    """All accounts; who has several has to say which."""
    return {"accountIds": ",".join(account_ids(client)), "perPage": 100}


def asked(client: httpx.Client, import_id: str) -> Iterator[tuple[str, Json]]:
    """Every path of the contract that reads, by its template, and what is said with it."""
    every = selection(client)
    for page in (1, 2):
        yield "/transactions", {"page": page}
    for word in ("miete", "ü"):
        yield "/transactions", {"search": word}
    for row in get(client, "/transactions", **every)["transactions"][:5]:
        for path in (
            "/transactions/{id}",
            "/transactions/{id}/explanation",
            "/transactions/{id}/rule",
            "/transactions/{id}/annotation",
        ):
            yield path, {"id": row["id"]}
    for each in get(client, "/subscriptions/details", **every)["subscriptions"]:
        yield "/subscriptions/{id}", {"id": each["id"]}
    yield "/subscriptions/details", {"status": "all", "direction": "all"}
    for each in get(client, "/cashflow", months=12, **every)["cashflow"]:
        yield "/cashflow/{month}/transactions", {"month": each["month"]}
    for category in ("GROCERIES", "DINING", "SHOPPING", "OTHER"):
        yield "/snapshot/categories/{category}/transactions", {"category": category}
    for field in ("category", "month", "merchant,type", "week,account"):
        yield "/transactions/totals", {"groupBy": field, "status": "all"}
    for filters in ({"words": "mie"}, {"sort": "-amount", "status": "all"}, {"flag": "not_refunded"}):
        yield "/transactions/search", filters
    yield "/transactions/search", {"tag": "two", "include": "annotation"}
    yield "/transactions/export", {"format": "csv", "include": "annotation"}
    days = {"dateFrom": "2026-01-01", "dateTo": "2026-12-31"}
    yield "/transactions/totals", {"groupBy": "category,month", "compareWith": "previousYear", **days}
    for kind in FORMATS:
        yield "/transactions/export", {"format": kind}
    finer = {"include": "detailedCategory", "detailedCategory": "SUPERMARKET"}
    yield "/transactions", finer
    yield "/transactions/search", finer
    yield "/transactions/totals", {"groupBy": "detailedCategory"}
    yield "/transactions/export", {"format": "csv", "include": "detailedCategory"}
    yield "/targets", {"month": "2026-03"}
    yield "/imports/{id}", {"id": import_id}
    for path in ("/cashflow", "/cashflow/categories"):
        yield path, {"months": 12}
    for path in ("accounts", "snapshot", "subscriptions", "subscriptions/details", "profile", "balances", "connections",
                 "imports", "layouts", "categories", "corrections", "rules", "accounts/hidden", "accounts/merged",
                 "integrity", "webhooks", "transactions/taken-back", "forecast", "tags", "targets",
                 "notices"):  # fmt: skip
        yield f"/{path}", {}


def answers(folder: Path) -> dict[tuple[str, str], tuple[int, str]]:
    found = {}
    with running(folder, is_measured=False) as served:
        for user in ("demo", "solo", "empty", "globe"):
            client = served.client(user, " ".join(ALL_SCOPES))
            import_id = changed(client)
            every = selection(client)
            for template, named in asked(client, import_id):
                answer = client.get(template.format(**named), params={**every, **named})
                said = f"{template} {json.dumps(named)}"
                found[user, OF_THE_MAKING.sub("", said)] = answer.status_code, OF_THE_MAKING.sub("", answer.text)
    return found


@pytest.mark.requirement("engines.equal")
@pytest.mark.long
def test_both_engines_answer_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_postgresql = answers(tmp_path / "postgresql")
    monkeypatch.setattr(ENGINE, "name", "duckdb")
    assert answers(tmp_path / "duckdb") == on_postgresql
    refused = {said.split(" ")[0] for (_, said), (status, _) in on_postgresql.items() if status != 200}
    assert refused <= {"/transactions/{id}/rule"}  # a booking may name nothing that a rule could be about
    reading = {path for path, operations in json.loads(CONTRACT.read_text())["paths"].items() if "get" in operations}
    told = {said.split(" ")[0] for _, said in on_postgresql}
    # The first is about the moment, the next two tell in the order of commits, which several syncs at once decide, the
    # next does not end, and the last are those of one grant (tests/webhooks)
    of_a_grant = {"/webhooks/{id}", "/webhooks/{id}/deliveries"}
    assert told == reading - {"/sync/{syncId}", "/transactions/changes", "/accounts/changes", "/events", *of_a_grant}
