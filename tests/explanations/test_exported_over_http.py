"""GET /transactions/export over the real application: the list as a file, in every format that the command writes."""

import csv
from io import StringIO
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.testclient import TestClient

from handlers.commands.exports import export
from handlers.work.export_formats import FORMATS
from handlers.work.unread_exports import PER_USER_MAX
from storage import users
from tests.explanations.conftest import Service, body_of


@pytest.fixture
def demo(demo_service: Service) -> TestClient:
    """The demo's first user: four accounts at two banks."""
    return demo_service.named("demo")


def ids_of(client: TestClient) -> list[str]:
    return [account["id"] for account in body_of(client, "/accounts")["accounts"]]


def exported(client: TestClient, format_: str, **asked: Any) -> bytes:
    answer = client.get("/transactions/export", params={"format": format_, **asked})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["cache-control"] == "no-store"
    return answer.content


def lines(content: bytes) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in content.splitlines()]


@pytest.mark.requirement("export.http")
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.sampled
def test_everything_over_http_is_what_the_command_writes(
    format_: str, demo: TestClient, demo_service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = demo_service.services
    moment = services.clock.now()
    monkeypatch.setattr(type(services.clock), "now", lambda _clock: moment)
    user = users.get_by_name(services.everybody, "demo")
    path = tmp_path / "all"
    export(services.everybody, user.id, format_, path, now=moment, today=services.clock.today())
    assert exported(demo, format_, accountIds=",".join(ids_of(demo))) == path.read_bytes()


@pytest.mark.requirement("export.http")
@pytest.mark.parametrize(
    "asked",
    [
        {"types": "fee"},
        {"words": "rewe|edeka", "direction": "out"},
        {"merchant": "Spotify"},
        {"categories": "DINING,GROCERIES", "counted": "true"},
        {"flag": "uncategorised", "dateFrom": "2026-01-01"},
        {"amountMin": "10", "amountMax": "20", "amounts": "size"},
    ],
    ids=lambda asked: "+".join(asked),
)
@pytest.mark.sampled
def test_filters_of_a_search_let_through_what_the_search_finds(demo: TestClient, asked: dict[str, str]) -> None:
    given = {"accountIds": ",".join(ids_of(demo)), **asked}
    first = body_of(demo, "/transactions/search", perPage=100, **given)
    pages = range(2, first["pagination"]["pageCount"] + 1)
    more = [body_of(demo, "/transactions/search", perPage=100, page=page, **given)["transactions"] for page in pages]
    listed = {row["id"] for rows in [first["transactions"], *more] for row in rows}
    assert 0 < len(listed) < 1000
    assert {row["id"] for row in lines(exported(demo, "jsonl", **given))} == listed


@pytest.mark.requirement("export.http")
def test_limits_of_signed_amounts_hold_beside_filters_of_a_search(demo: TestClient) -> None:
    given = {"accountIds": ",".join(ids_of(demo)), "types": "card_payment"}
    found = lines(exported(demo, "jsonl", amountMin="-20.00", amountMax="-10.00", **given))
    assert found
    assert all(-20 <= row["amount"] <= -10 and row["type"] == "card_payment" for row in found)
    refused = demo.get("/transactions/export", params={"format": "csv", "types": "x"})
    assert refused.json()["error"].startswith("types: must be of")


@pytest.mark.requirement("export.http")
def test_filters_let_through_what_they_let_through_of_the_list(demo: TestClient) -> None:
    asked = {"accountIds": ",".join(ids_of(demo)), "search": "rewe", "category": "GROCERIES", "dateFrom": "2026-06-01"}
    listed = body_of(demo, "/transactions", perPage=100, **asked)
    found = lines(exported(demo, "jsonl", **asked))
    assert 0 < len(found) == listed["pagination"]["total"] <= 100
    assert {row["id"] for row in found} == {row["id"] for row in listed["transactions"]}
    assert {row["account"]["balance"] for row in found} == {None}  # of some bookings no statement adds up
    assert all(exported(demo, each, **asked) for each in FORMATS)
    assert exported(demo, "jsonl", **asked | {"search": "there is no such thing"}) == b""


@pytest.mark.requirement("export.http")
def test_a_file_has_a_name_that_says_what_it_is(demo: TestClient, demo_service: Service) -> None:
    first, today = ids_of(demo)[0], demo_service.services.clock.today()
    for format_, ending in {"csv": "csv", "camt053": "xml"}.items():
        answer = demo.get("/transactions/export", params={"format": format_, "accountIds": first})
        assert answer.headers["content-disposition"] == f'attachment; filename="transactions-{today}.{ending}"'


@pytest.mark.requirement("export.http")
@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("format=csv", "accountIds: required, because you have several accounts. GET /accounts lists their ids"),
        ("format=xlsx", "format: must be one of csv, jsonl, parquet, camt053, ofx, beancount"),
        ("", "format: is required"),
        ("format=csv&dateFrom=2026-02-01&dateTo=2026-01-31", "dateFrom: must not be after dateTo"),
    ],
)
def test_what_cannot_be_exported_is_refused_in_a_sentence(query: str, error: str, demo: TestClient) -> None:
    answer = demo.get(f"/transactions/export?{query}")
    assert (answer.status_code, answer.json()) == (400, {"error": error})


@pytest.mark.requirement("export.http")
def test_a_head_says_how_large_the_file_is_and_sends_nothing(demo: TestClient) -> None:
    asked = {"format": "csv", "accountIds": ids_of(demo)[0]}
    answer = demo.head("/transactions/export", params=asked)
    content = exported(demo, **{"format_": "csv", "accountIds": asked["accountIds"]})
    assert (answer.content, answer.headers["content-length"]) == (b"", str(len(content)))
    assert len(list(csv.reader(StringIO(content.decode())))) > 100


@pytest.mark.requirement("export.waiting")
def test_whoever_has_too_many_exports_unread_is_told_to_read_them_first(
    demo: TestClient, demo_service: Service
) -> None:
    services, asked = demo_service.services, {"format": "csv", "accountIds": ids_of(demo)[0]}
    user = users.get_by_name(services.everybody, "demo")
    unread = [services.unread_exports.write(user.id, lambda _file: None) for _ in range(PER_USER_MAX)]
    answer = demo.get("/transactions/export", params=asked)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")
    assert answer.json() == {"error": "Too many exports are still being read. Try again when one of them is done."}
    unread.pop().close()
    for _ in range(PER_USER_MAX):  # what was read to its end waits for nobody
        assert exported(demo, "csv", accountIds=asked["accountIds"])
    for file in unread:
        file.close()
