"""The official TypeScript SDK of two generations: from the address alone, with one consent, to every tool."""

import re
import subprocess
import threading
from pathlib import Path

import httpx
import pytest

from tests.oauth.conftest import fields

PROGRAM = Path(__file__).with_name("every_tool.mjs")
INSTALL = Path(__file__).parents[1] / "clients" / "npm" / "install.sh"
SECONDS_MAX = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program beside the packages of the lock."""
    packages = subprocess.run(["bash", str(INSTALL)], capture_output=True, text=True, timeout=300, check=True)
    folder = tmp_path_factory.mktemp("typescript-sdk")
    (folder / "node_modules").symlink_to(Path(packages.stdout.strip()) / "node_modules")
    (folder / PROGRAM.name).write_bytes(PROGRAM.read_bytes())
    return folder


@pytest.mark.requirement("mcp.clients")
@pytest.mark.parametrize(
    ("generation", "mode", "version"),
    [("2", "auto", "2026-07-28"), ("2", "legacy", "2025-11-25"), ("1", "legacy", "2025-11-25")],
)
@pytest.mark.sampled
def test_from_the_address_alone_to_every_tool(
    address: str, folder: Path, generation: str, mode: str, version: str
) -> None:
    printed, consents = run(address, ["node", PROGRAM.name, f"{address}/mcp", generation, mode], folder)
    answers = dict(re.findall(r"^tool (\w+) (.+)$", printed, re.MULTILINE))
    assert f"version {version}" in printed
    assert consents == 1
    assert len(answers) == 11
    assert "answered" in answers.pop("refresh_bank_data").replace("synced recently", "answered")
    assert set(answers.values()) == {"answered"}
    assert re.findall(r"^prompt (\w+) answered$", printed, re.MULTILINE) == [
        "monthly_review",
        "what_changed",
        "what_is_due",
    ]


def run(address: str, command: list[str], folder: Path) -> tuple[str, int]:
    """What a client printed, and how often it asked for consent."""
    consents = 0
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        deadline = threading.Timer(SECONDS_MAX, process.kill)
        deadline.start()
        assert process.stdout is not None
        printed = ""
        for line in process.stdout:
            printed += line
            if line.startswith("Open "):
                consents += 1
                allow(address, line.split()[1])
        code = process.wait(SECONDS_MAX)
        deadline.cancel()
    assert code == 0, printed
    return printed, consents


def allow(address: str, page_address: str) -> None:
    """What a person does in a browser: open the page, sign in, allow, be sent back."""
    with httpx.Client(base_url=address, timeout=60) as browser:
        page = browser.get(page_address)
        form = fields(browser.get(page.headers["location"]).text)
        page = browser.post("/oauth/login", data={**form, "username": "demo", "password": "demo-demo-2024"})
        form = fields(browser.get(page.headers["location"]).text)
        back = browser.post("/oauth/consent", data={**form, "decision": "allow"})
    httpx.get(back.headers["location"], timeout=60)
