"""The demo's service as an assistant meets it: one address, tokens of its own, messages of both eras."""

import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from starlette.testclient import TestClient

from auth.scopes import SCOPES
from handlers.mcp.messages import NAMING
from handlers.server import application
from handlers.settings import load
from handlers.work.services import open_services
from storage import users
from storage.oauth.grants import EVERYTHING, Terms
from tests.explanations.conftest import Service, demo_at_noon, opened
from tests.running import running
from tests.service.conftest import copied, demo_store

__all__ = ["copied", "demo_store"]  # fixtures of the service's tests, for these too

ADDRESS = "http://127.0.0.1:8000"
MODERN = "2026-07-28"
LIST_CHARACTERS_MAX = 16_000
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
ELICITS = {**META, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
Json = dict[str, Any]

# Without node there is nothing to run the JavaScript clients with; .ci/run installs it
collect_ignore = [] if shutil.which("npm") else ["test_typescript_sdk.py"]


@dataclass
class Assistant:
    """A client of one user and some scopes; `rest` asks the data interface for the same user."""

    http: TestClient
    rest: TestClient

    def send(self, body: Any, **headers: str) -> Any:
        return self.http.post("/mcp", json=body, headers=headers)

    def asks(self, method: str, params: Json | None = None, **headers: str) -> Any:
        """One request of the handshake's era."""
        return self.send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}, **headers)

    def asks_modern(self, method: str, params: Json | None = None, **headers: str) -> Any:
        """One request that stands alone."""
        named = {"Mcp-Name": str((params or {})[NAMING[method]])} if method in NAMING else {}
        sent = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, **named, **headers}
        return self.asks(method, {**(params or {}), "_meta": META}, **sent)

    def result(self, tool: str, **arguments: Any) -> Json:
        """What a tool answers."""
        answer = self.asks("tools/call", {"name": tool, "arguments": arguments})
        assert answer.status_code == 200, answer.text
        result: Json = answer.json()["result"]
        return result

    def answer(self, tool: str, **arguments: Any) -> Json:
        """Its structured content, held against the schema that is listed."""
        result = self.result(tool, **arguments)
        assert not result["isError"], result["content"]
        content: Json = result["structuredContent"]
        schema = next(each for each in self.tools() if each["name"] == tool)["outputSchema"]
        Draft202012Validator(schema).validate(content)
        return content

    def error(self, tool: str, **arguments: Any) -> str:
        """The sentence of a tool that cannot answer."""
        result = self.result(tool, **arguments)
        assert result["isError"], result
        sentence: str = result["content"][0]["text"]
        return sentence

    def tools(self) -> list[Json]:
        listed: list[Json] = self.asks("tools/list").json()["result"]["tools"]
        return listed


def asked(client: Assistant, arguments: Json, answers: Json | None = None) -> Json:
    """The result of a change by a client that asks its person."""
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "annotate_transaction"}
    params = {"name": "annotate_transaction", "arguments": arguments, "_meta": ELICITS}
    more = {"inputResponses": answers} if answers else {}
    result: Json = client.asks("tools/call", {**params, **more}, **headers).json()["result"]
    return result


def assistant(
    service: Service, name: str, scopes: frozenset[str] = frozenset(SCOPES), terms: Terms = EVERYTHING
) -> Assistant:
    """A client with an operator's token for assistants."""
    user_id = users.get_by_name(service.services.everybody, name).id
    token = service.services.authorization.issue_token(user_id, scopes, timedelta(hours=1), resource="mcp", terms=terms)
    http = TestClient(
        service.app, base_url=ADDRESS, headers={"Authorization": f"Bearer {token}"}, raise_server_exceptions=False
    )
    return Assistant(http, service.named(name))


@pytest.fixture(scope="session")
def demo_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The store that `bankdata demo` makes."""
    service = opened(demo_at_noon(tmp_path_factory), validate_responses=False)
    yield service
    service.services.close()


@pytest.fixture(scope="session")
def demo_user(demo_service: Service) -> Assistant:
    """The demo's first user: four accounts."""
    return assistant(demo_service, "demo")


@pytest.fixture(scope="session")
def address(copied: Callable[[], Path]) -> Iterator[str]:
    """A running server with the demo's data."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        services = open_services(load({}, data_dir=copied(), address=base))
        with running(application(services), listener, log_level="warning"):
            yield base
