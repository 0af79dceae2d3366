"""Every setting, command and operation stands in the documents, and nothing that stands there is missing."""

import json
import os
import re
from pathlib import Path

import pytest

from handlers.settings import PREFIX, SettingError, Settings, load
from tests.documents.conftest import ROOT, blocks, pages, table, ticked
from tests.documents.made_from_code import MADE, commands, written_anew

DOCS = ROOT / "docs"
INTERFACE = DOCS / "decisions" / "interface.md"
SETTINGS = {ticked(row[0])[0]: row for row in table(DOCS / "settings.md", "setting")}
SAID_IN_WORDS = {
    "DATABASE_URL",
    "DATABASE_APP_URL",
    "KEYS_SECRET",
    "PUBLIC_URL",
    "AUTH_URL",
    "BILLING_URL",
    "TRUSTED_PROXIES",
    "DATA_DIR",
    "WRITING_CLIENTS",
    "CONNECTION_KEYS",
    "FINAPI_CLIENT",
    "FINAPI_SECRET_FILE",
    "FINTS_PRODUCT",
    "FINTS_BANKS",
    "WEBHOOKS_ALLOW",
    "ENABLE_BANKING_APPLICATION",
    "ENABLE_BANKING_KEY_FILE",
}
CONTRACTS = (
    "openapi.json",
    "handlers/oauth/oauth-api.json",
    "handlers/mcp/mcp-api.json",
    "handlers/simplefin/simplefin-api.json",
    "handlers/calendar/calendar-api.json",
)
COMMAND_PAGES = ("commands.md", "settings.md", "operations.md", "rules.md")
METHODS = ("get", "post", "put", "patch", "delete")


COMMANDS = dict(commands())


@pytest.mark.requirement("docs.settings")
def test_the_table_of_settings_is_the_settings() -> None:
    assert SETTINGS.keys() == {PREFIX + name.upper() for name in Settings.__dataclass_fields__}


@pytest.mark.requirement("docs.settings")
@pytest.mark.parametrize("name", [name for name in SETTINGS if name.removeprefix(PREFIX) not in SAID_IN_WORDS])
def test_the_default_that_is_shown_is_the_default(name: str) -> None:
    field = name.removeprefix(PREFIX).lower()
    (shown,) = ticked(SETTINGS[name][2])
    assert getattr(load({name: shown}), field) == getattr(load({}), field)


@pytest.mark.requirement("docs.settings")
def test_the_defaults_that_are_described_are_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    settings = load({}, address="http://127.0.0.1:8000")
    folder = tmp_path / ".local" / "share" / "bankdata"
    assert (settings.data_dir, settings.store_path) == (folder, folder / "bankdata.duckdb")
    assert settings.public_url == settings.auth_url == "http://127.0.0.1:8000"
    assert settings.billing_url == "http://127.0.0.1:8000/billing"
    assert settings.trusted_proxies == settings.fints_banks == ()
    assert settings.database_app_url == ""


@pytest.mark.requirement("docs.settings")
@pytest.mark.parametrize("name", SETTINGS)
def test_the_example_is_taken_and_the_counterexample_refused(name: str) -> None:
    (example,) = ticked(SETTINGS[name][3])
    assert load({name: example}) != load({})
    for wrong in ticked(SETTINGS[name][4]):
        with pytest.raises(SettingError, match=name):
            load({name: wrong})


@pytest.mark.requirement("docs.commands")
@pytest.mark.parametrize("page", MADE)
def test_a_table_that_is_made_from_the_code_says_what_the_code_says(page: str) -> None:
    assert (DOCS / page).read_text("utf-8") == written_anew(page), "run: python -m tests.documents.made_from_code"


@pytest.mark.requirement("docs.commands")
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_shown_in_use(name: str) -> None:
    shown = "\n".join(block.text for page in pages() for block in blocks(page) if block.language == "sh")
    assert re.search(rf"\b{name}\b", shown)


@pytest.mark.requirement("docs.commands")
def test_every_option_that_is_mentioned_exists() -> None:
    known = {word for command in COMMANDS.values() for each in command.params for word in each.opts} | {"--help"}
    for page in (ROOT / "README.md", *(DOCS / name for name in COMMAND_PAGES)):
        lines = [line for block in blocks(page) if block.language == "sh" for line in block.text.splitlines()]
        texts = [*(line for line in lines if "bankdata" in line), *ticked(_without_blocks(page))]
        mentioned = {word for text in texts for word in re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)}
        assert mentioned <= known, page.name


@pytest.mark.requirement("docs.operations")
def test_the_tables_of_operations_are_the_contracts() -> None:
    described = set()
    for file in CONTRACTS:
        for path, item in json.loads((ROOT / file).read_bytes())["paths"].items():
            described |= {(item[word]["operationId"], f"{word.upper()} {path}") for word in METHODS if word in item}
    listed = {(row[1], ticked(row[2])[0]) for row in table_rows(INTERFACE) if row[1] != "a page"}
    assert listed == described


@pytest.mark.requirement("docs.operations")
def test_the_scopes_that_are_listed_are_those_of_the_contract() -> None:
    contract = json.loads((ROOT / "openapi.json").read_bytes())["paths"]
    for _, _, operation, scope in (row for row in table_rows(INTERFACE) if len(row) == 4):
        method, path = ticked(operation)[0].split()
        (asked,) = contract[path][method.lower()]["security"]
        assert ticked(scope) == asked["oauth2"]


@pytest.mark.requirement("docs.commands")
def test_these_tests_see_no_settings_of_whoever_runs_them() -> None:
    assert not [name for name in os.environ if name.startswith(PREFIX)]


def table_rows(page: Path) -> list[list[str]]:
    """The rows of all tables of operations on the page."""
    lines = [line for line in page.read_text("utf-8").splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in rows if row[0] != "section" and set(row[0]) != {"-"}]


def _without_blocks(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
