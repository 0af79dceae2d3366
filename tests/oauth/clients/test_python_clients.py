"""Real clients in Python and curl, as docs/clients.md shows them, against the running server."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.engine("duckdb")  # the engine has no part in it

Run = Callable[..., str]
Example = Callable[[str, str], str]


@pytest.mark.requirement("oauth.clients_doc")
def test_curl(run: Run, example: Example) -> None:
    printed = run(example("sh", "curl"), "bash", answers_code=True)
    assert '{"user":"' in printed
    assert len(re.findall('"refresh_token":', printed)) == 1


@pytest.mark.requirement("oauth.clients_doc")
def test_authlib(run: Run, example: Example, python: str) -> None:
    printed = run(example("python", "authlib"), python)
    assert "accounts 200" in printed
    assert "refreshed 200" in printed


@pytest.mark.requirement("oauth.clients_doc")
@pytest.mark.long
def test_the_mcp_sdk_registers_signs_in_and_steps_up(run: Run, example: Example, python: str) -> None:
    printed = run(example("python", "mcp.client"), python)
    assert "accounts 200" in printed
    assert "stepped up 200" in printed
    first, second = re.findall(r"scope=([^&\s]*)", printed)
    assert "cashflow" not in first
    assert "accounts" in second
    assert "cashflow" in second


@pytest.mark.requirement("oauth.real_clients")
def test_requests_oauthlib(run: Run, python: str) -> None:
    printed = run((Path(__file__).parent / "requests_oauthlib_client.txt").read_text("utf-8"), python)
    assert "accounts 200" in printed
    assert "refreshed by itself 200" in printed
    assert "revoked 200 401" in printed
