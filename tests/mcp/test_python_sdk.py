"""The official Python SDK, in both of its modes: from the address alone, with one consent, to every tool and prompt."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx
import httpx2
import pytest
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.client import Client
from mcp.client.extension import ClientExtension, advertise
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from tests.oauth.conftest import fields

REDIRECT = "http://127.0.0.1:3999/callback"


class Memory:
    """Where a client keeps its registration and its tokens."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@asynccontextmanager
async def connected(
    base: str, mode: str, consents: list[str], extensions: Sequence[ClientExtension] = ()
) -> AsyncIterator[Client]:
    answer: dict[str, str] = {}

    async def person(url: str) -> None:
        """Opens the page in a browser, signs in, allows."""
        consents.append(url)
        async with httpx.AsyncClient(base_url=base, follow_redirects=False, timeout=60) as browser:
            page = await browser.get(url)
            form = fields((await browser.get(page.headers["location"])).text)
            page = await browser.post("/oauth/login", data={**form, "username": "demo", "password": "demo-demo-2024"})
            form = fields((await browser.get(page.headers["location"])).text)
            back = await browser.post("/oauth/consent", data={**form, "decision": "allow"})
            answer.update(
                {name: values[0] for name, values in parse_qs(urlsplit(back.headers["location"]).query).items()}
            )

    async def come_back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**answer)

    metadata: Any = OAuthClientMetadata.model_validate(
        {"client_name": "SDK", "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none"}
    )
    auth = OAuthClientProvider(f"{base}/mcp", metadata, Memory(), person, come_back)
    async with (
        httpx2.AsyncClient(auth=auth, timeout=60) as http,
        Client(streamable_http_client(f"{base}/mcp", http_client=http), mode=mode, extensions=extensions) as client,
    ):
        yield client


@pytest.mark.requirement("mcp.clients")
@pytest.mark.parametrize(("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
@pytest.mark.sampled
def test_from_the_address_alone_to_every_tool(address: str, mode: str, version: str) -> None:
    consents: list[str] = []
    answered: dict[str, Any] = {}

    async def used() -> None:
        async with connected(address, mode, consents) as client:
            assert client.session.protocol_version == version
            listed = [tool.name for tool in (await client.list_tools()).tools]
            rows = (await client.call_tool("search_transactions", {})).structured_content
            assert rows is not None
            arguments: dict[str, dict[str, Any]] = {
                "explain_figure": {"kind": "month", "key": "2026-10"},
                "get_transaction": {"id": rows["transactions"][0]["ref"]},
                "refresh_bank_data": {"waitSeconds": 1},
            }
            prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
            assert prompts == ["monthly_review", "what_changed", "what_is_due"]
            (message,) = (await client.get_prompt("monthly_review", {"month": "2026-10"})).messages
            assert message.role == "user"
            assert "Review 2026-10 of" in message.content.model_dump()["text"]
            for name in listed:
                answered[name] = await client.call_tool(name, arguments.get(name, {}))

    anyio.run(used)
    assert len(answered) == 11
    assert len(consents) == 1
    for name, result in answered.items():
        is_too_soon = name == "refresh_bank_data" and "recently" in result.content[0].text
        assert not result.is_error or is_too_soon, (name, result.content)


@pytest.mark.requirement("mcp.apps")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_that_shows_apps_finds_the_chart_where_a_tool_names_it(address: str, mode: str) -> None:
    shows = advertise("io.modelcontextprotocol/ui", {"mimeTypes": ["text/html;profile=mcp-app"]})
    read: list[Any] = []

    async def used() -> None:
        async with connected(address, mode, [], [shows]) as client:
            tools = {tool.name: tool.meta for tool in (await client.list_tools()).tools}
            named = tools["get_cashflow"]
            assert named is not None
            assert tools["get_overview"] is None
            listed = (await client.list_resources()).resources[-1]
            assert str(listed.uri) == named["ui"]["resourceUri"]
            read.extend((await client.read_resource(listed.uri)).contents)
            assert not (await client.call_tool("get_cashflow", {})).is_error

    anyio.run(used)
    (chart,) = read
    assert chart.mime_type == "text/html;profile=mcp-app"
    assert chart.text.startswith("<!doctype html>")
