"""Resources and news of them, and the question to the person before a change: with the official Python SDK, too."""

import json
import socket
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import anyio
import httpx
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.subscriptions import ResourceUpdated
from mcp_types import ElicitResult

from auth.scopes import ALL_SCOPES, READ_ACCOUNTS
from handlers.server import application
from handlers.settings import load
from handlers.work.services import Services, open_services
from storage import users
from storage.oauth.grants import EVERYTHING, Terms
from tests.explanations.conftest import Service, body_of
from tests.mcp.conftest import Assistant, asked, assistant
from tests.mcp.test_annotating import ALLOWED, booking, said, writing
from tests.running import running

__all__ = ["writing"]  # a fixture of the tests of changes, for these too

URIS = ["bankdata://accounts", "bankdata://categories", "bankdata://profile"]
Json = dict[str, Any]


def read(client: Assistant, uri: str) -> Json:
    """The content of a resource, which is the same in both eras."""
    modern = client.asks_modern("resources/read", {"uri": uri}).json()["result"]
    [content] = client.asks("resources/read", {"uri": uri}).json()["result"]["contents"]
    assert (modern["contents"], modern["ttlMs"]) == ([content], 0)
    body: Json = json.loads(content["text"])
    return body


@pytest.mark.requirement("mcp.tools")
def test_accounts_categories_and_profile_are_read_as_far_as_the_grant_goes(
    demo_service: Service, demo_user: Assistant
) -> None:
    listed = demo_user.asks("resources/list").json()["result"]["resources"]
    assert [each["uri"] for each in listed] == URIS
    accounts = read(demo_user, URIS[0])
    overview = demo_user.answer("get_overview")
    assert accounts["accounts"] == overview["accounts"]
    assert "DE89" not in json.dumps(accounts).replace(" ", "") or "…" in json.dumps(accounts, ensure_ascii=False)
    assert {"code": "WAGES", "category": "SALARY", "name": "Wages and salary"} in read(demo_user, URIS[1])["categories"]
    assert read(demo_user, URIS[2]) == body_of(demo_user.rest, "/profile")
    narrow = assistant(demo_service, "demo", frozenset({READ_ACCOUNTS}))
    assert [each["uri"] for each in narrow.asks("resources/list").json()["result"]["resources"]] == [URIS[0], URIS[2]]
    refused = narrow.asks("resources/read", {"uri": URIS[1]})
    assert refused.json()["error"]["code"] == -32602


@pytest.mark.requirement("mcp.tools")
def test_a_person_whom_the_client_can_ask_is_asked_before_something_is_changed(writing: Assistant) -> None:
    id_, ref = booking(writing)
    nothing = said(writing, id_)
    wanted = {"id": ref, "category": "HEALTH", "addTags": ["gift"], "dryRun": False}
    question = asked(writing, wanted)
    assert question["resultType"] == "input_required"
    told = question["inputRequests"]["confirmation"]
    assert (told["method"], told["params"]["mode"]) == ("elicitation/create", "form")
    assert told["params"]["message"].endswith(": category HEALTH; tags «gift»?")
    for answer in ({"action": "decline"}, {"action": "cancel"}, "accept", {}):
        refused = asked(writing, wanted, {"confirmation": answer} if answer else {"other": {"action": "accept"}})
        assert refused.get("structuredContent", {}).get("isDone") is not True
        assert said(writing, id_) == nothing
    done = asked(writing, wanted, {"confirmation": {"action": "accept", "content": {}}})
    assert (done["resultType"], done["structuredContent"]["isDone"]) == ("complete", True)
    assert said(writing, id_)["tags"] == ["gift"]
    tried = asked(writing, {"id": ref, "category": "RENT"})  # a dry run asks nobody
    assert tried["structuredContent"]["isDone"] is False
    wrong = asked(writing, {"id": ref, "category": "FOOD", "dryRun": False})
    assert wrong["isError"] is True
    undo = done["structuredContent"]["undo"]
    writing.answer("annotate_transaction", id=ref, **undo, dryRun=False)
    assert said(writing, id_) == nothing


def rpc(method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


@pytest.fixture
def served(copied: Callable[[], Path]) -> Iterator[tuple[str, str, str, str, Services]]:
    """A running server with the demo's data: its address, and tokens of one person for apps and for two assistants."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        services = open_services(load({}, data_dir=copied(), address=base))
        with running(application(services), listener, log_level="warning"):
            user_id, issue = users.get_by_name(services.everybody, "solo").id, services.authorization.issue_token
            ours = issue(user_id, frozenset(ALL_SCOPES), timedelta(hours=1), resource="data")
            one, other = (issue(user_id, ALLOWED, timedelta(hours=1), resource="mcp") for _ in range(2))
            yield base, ours, one, other, services


@pytest.mark.requirement("mcp.tools")
@pytest.mark.sampled
@pytest.mark.parametrize("action", ["accept", "decline"])
def test_a_client_that_shook_hands_asks_its_person_on_the_stream_of_the_call(
    served: tuple[str, str, str, str, Services], action: Literal["accept", "decline"]
) -> None:
    address, ours, assistants, *_ = served
    questions: list[str] = []

    async def answer(context: Any, params: Any) -> ElicitResult:
        questions.append(params.message)
        return ElicitResult(action=action, content={} if action == "accept" else None)

    async def used() -> tuple[str, Json]:
        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {assistants}"}, timeout=60)
        transport = streamable_http_client(f"{address}/mcp", http_client=http)
        async with http, Client(transport, mode="legacy", elicitation_callback=answer) as client:
            rows = (await client.call_tool("search_transactions", {"perPage": 1})).structured_content
            assert rows is not None
            ref = rows["transactions"][0]["ref"]
            changed = await client.call_tool("annotate_transaction", {"id": ref, "addTags": ["x"], "dryRun": False})
            assert changed.structured_content is not None
            return ref, changed.structured_content

    ref, changed = anyio.run(used)
    assert (changed["isDone"], changed["ref"]) == (action == "accept", ref)
    assert len(questions) == 1
    assert questions[0].endswith(": tags «x»?")
    tagged = httpx.get(f"{address}/api/v1/transactions?tag=x", headers={"Authorization": f"Bearer {ours}"}).json()
    assert len(tagged["transactions"]) == (action == "accept")


def shaken_hands(http: httpx.Client) -> tuple[Json, dict[str, str]]:
    """A change of which a client that shook hands can ask its person, and the headers to ask for it with."""
    told = {"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": {}}
    session = http.post("/mcp", json=rpc("initialize", told)).headers["mcp-session-id"]
    found = http.post("/mcp", json=rpc("tools/call", {"name": "search_transactions", "arguments": {"perPage": 1}}))
    ref = found.json()["result"]["structuredContent"]["transactions"][0]["ref"]
    wanted = {"id": ref, "note": "n", "dryRun": False}
    change = rpc("tools/call", {"name": "annotate_transaction", "arguments": wanted})
    return change, {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-06-18"}


@pytest.mark.requirement("mcp.tools")
def test_a_question_is_answered_once_and_by_the_grant_that_was_asked(
    served: tuple[str, str, str, str, Services],
) -> None:
    address, _ours, assistants, another, _services = served
    headers = {"Authorization": f"Bearer {assistants}", "Accept": "application/json, text/event-stream"}
    with httpx.Client(base_url=address, headers=headers, timeout=60) as http:
        change, named = shaken_hands(http)
        with http.stream("POST", "/mcp", json=change, headers=named) as stream:
            events = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: "))
            question = next(events)
            assert question["method"] == "elicitation/create"
            said = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
            other = {"Authorization": f"Bearer {another}"}
            answers = [
                http.post("/mcp", json=each, headers=by).status_code
                for each, by in (
                    (said, other),
                    ({**said, "id": "guessed"}, {}),
                    (said, {}),
                    ({**said, "result": {"action": "accept"}}, {}),
                )
            ]
            assert answers == [400, 400, 202, 400]
            assert next(events)["result"]["structuredContent"]["isDone"] is False
            assert list(events) == []
        without = http.post("/mcp", json=change, headers={**named, "Accept": "application/json"}).json()
        assert without["result"]["structuredContent"]["isDone"] is True


@pytest.mark.requirement("mcp.tools")
def test_an_open_question_is_heard_of_and_its_answer_is_worth_what_the_access_is_by_then(
    served: tuple[str, str, str, str, Services],
) -> None:
    address, _ours, assistants, _another, services = served
    object.__setattr__(services.settings, "events_heartbeat_seconds", timedelta(seconds=0.1))
    access, grants_of = services.authorization.access, services.authorization.grants
    grant_id = access.principal(assistants, services.authorization.policy.address_of("mcp")).grant_id or ""
    headers = {"Authorization": f"Bearer {assistants}", "Accept": "application/json, text/event-stream"}
    with httpx.Client(base_url=address, headers=headers, timeout=60) as http:
        change, named = shaken_hands(http)
        with http.stream("POST", "/mcp", json=change, headers=named) as stream:
            lines = stream.iter_lines()
            question = json.loads(next(line for line in lines if line.startswith("data: "))[6:])
            assert next(line for line in lines if line) == ":"
            grant = grants_of.find_live(services.everybody, grant_id)
            grants_of.narrow(grant, terms=Terms(accounts=()), ends=grant.expires_at)
            said = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}}
            assert http.post("/mcp", json=said).status_code == 202
            [told] = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
            assert told["result"]["content"][0]["text"] == "Transaction not found."
        grants_of.widen(grant, terms=EVERYTHING, ends=grant.expires_at)
        with http.stream("POST", "/mcp", json=change, headers=named) as stream:
            lines = stream.iter_lines()
            assert next(line for line in lines if line.startswith("data: "))
            grants_of.revoke(grant_id, because="test")
            assert not [line for line in lines if line.startswith("data: ")]


@pytest.mark.requirement("mcp.clients")
@pytest.mark.sampled
def test_the_official_client_asks_its_person_and_hears_that_accounts_have_changed(
    served: tuple[str, str, str, str, Services],
) -> None:
    address, ours, assistants, *_ = served
    questions: list[str] = []
    heard: list[str] = []

    async def answer(context: Any, params: Any) -> ElicitResult:
        questions.append(params.message)
        return ElicitResult(action="accept", content={})

    async def used() -> None:
        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {assistants}"}, timeout=60)
        async with (
            http,
            Client(
                streamable_http_client(f"{address}/mcp", http_client=http), mode="auto", elicitation_callback=answer
            ) as client,
        ):
            rows = (await client.call_tool("search_transactions", {"perPage": 1})).structured_content
            assert rows is not None
            ref = rows["transactions"][0]["ref"]
            async with client.listen(resource_subscriptions=[URIS[0]]) as news:
                changed = await client.call_tool(
                    "annotate_transaction", {"id": ref, "category": "RENT", "dryRun": False}
                )
                assert changed.structured_content is not None
                assert changed.structured_content["isDone"] is True
                imported = httpx.post(
                    f"{address}/api/v1/imports?filename=a.csv",
                    content=b"Datum;Name;Betrag EUR\n02.02.2026;Eva;-8,50\n",
                    headers={"Authorization": f"Bearer {ours}", "Content-Type": "application/octet-stream"},
                    timeout=60,
                )
                assert imported.json()["error"] is None
                async for event in news:
                    assert isinstance(event, ResourceUpdated)
                    heard.append(event.uri)
                    break

    anyio.run(used)
    assert len(questions) == 1
    assert heard == URIS[:1]
