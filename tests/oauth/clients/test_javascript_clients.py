"""Real clients in JavaScript against the running server; collected where npm is installed."""

from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.engine("duckdb")  # the engine has no part in it

Run = Callable[..., str]
Example = Callable[[str, str], str]


@pytest.mark.requirement("oauth.clients_doc")
@pytest.mark.long
def test_oauth4webapi(run: Run, example: Example, node_folder: Path) -> None:
    printed = run(example("js", "oauth4webapi"), "node", node_folder, ".mjs")
    assert "accounts 200" in printed
    assert "refreshed true" in printed


@pytest.mark.requirement("oauth.real_clients")
@pytest.mark.parametrize("name", ["openid_client", "mcp_sdk"])
def test_other_clients(run: Run, node_folder: Path, name: str) -> None:
    text = (Path(__file__).parent / f"{name}.mjs").read_text("utf-8")
    printed = run(text, "node", node_folder, ".mjs")
    assert "accounts 200" in printed
    assert "refreshed true" in printed
    assert "stepped up 200" in printed
