"""Every setting, command and operation stands in the documents, and nothing that stands there is missing."""

import json
import os
import re
from pathlib import Path

import pytest

from handlers.settings import PREFIX, SettingError, Settings, load
from tests.documents.conftest import ROOT, blocks, pages, ticked
from tests.documents.made_from_code import MADE, commands, written_anew

DOCS = ROOT / "docs"
INTERFACE = DOCS / "decisions" / "interface.md"
TAKEN_AND_REFUSED: dict[str, tuple[str, str | None]] = {
    "data_dir": ("/var/lib/bankdata", None),
    "database_url": ("postgresql://bank@db.example/bank", "mysql://db/bank"),
    "database_app_url": ("postgresql://bank_app@db.example/bank", "duckdb:////bank.duckdb"),
    "database_pool": ("20", "0"),
    "database_prepare": ("off", "no"),
    "keys_secret": ("q2Zr5uJ0sVb8xWm1tYc4dLf7hNk3pGa6", "secret"),
    "public_url": ("https://bank.example.org", "bank.example.org"),
    "auth_url": ("https://bank.example.org/auth", "https://bank.example.org/?a=b"),
    "billing_url": ("https://example.org/plans", "/plans"),
    "time_zone": ("Europe/Vienna", "CET+1"),
    "home_currency": ("CHF", "Franken"),
    "rate_limit": ("600/60s", "60"),
    "rate_limit_url": ("redis://127.0.0.1:6379", "localhost:6379"),
    "schedule": ("05:00", "6 o'clock"),
    "sync_cooldown_seconds": ("900", "30m"),
    "trusted_proxies": ("127.0.0.1,10.0.0.0/8", "all"),
    "registration": ("token", "closed"),
    "registration_limit": ("5/day", "20"),
    "client_documents": ("on", "https://claude.ai"),
    "refresh_reuse_seconds": ("10", "61"),
    "writing_clients": ("q3Zk9w1hV2mY7c5B", "Budget"),
    "rates_url": ("https://mirror.example.org/eurofxref-hist.zip", "http://www.ecb.europa.eu/"),
    "connection_keys": ("/etc/bankdata/connection-keys.json", None),
    "simplefin_url": ("https://beta-bridge.simplefin.org", "http://bridge.simplefin.org"),
    "finapi_url": ("https://sandbox.finapi.io", "live.finapi.io"),
    "finapi_webform_url": ("https://webform-sandbox.finapi.io", "http://webform.finapi.io"),
    "finapi_client": ("a1b2c3d4-client", "my client"),
    "finapi_secret_file": ("/etc/bankdata/finapi-secret", None),
    "fints_product": ("9FA6681DEC0CF3046BFC2F8A6", "my product"),
    "fints_banks": ("12345678=https://fints.bank.example/pintan", "fints.bank.example"),
    "enable_banking_url": ("https://api.enablebanking.example", "http://api.enablebanking.com"),
    "enable_banking_application": ("0f2a7c1e-5b7d-4c39-9d0b-3a1f7d2c8e55", "my application"),
    "enable_banking_key_file": ("/etc/bankdata/enable-banking.pem", None),
    "oidc_issuer": ("https://login.example.org/home", "http://id.example.org"),
    "oidc_client_id": ("budget", "two words"),
    "oidc_client_secret": ("s3cret-of-the-client", "two words"),
    "oidc_name": ("Authelia", "x" * 41),
    "oidc_ca_file": ("/etc/bankdata/ca.pem", None),
    "oidc_groups": ("groups=family,friends", "family"),
    "oidc_new_people": ("on", "yes"),
    "oidc_only": ("on", "yes"),
    "simplefin_server": ("off", "https://bank.example.org"),
    "events_heartbeat_seconds": ("30", "0"),
    "webhooks_allow": ("10.20.0.0/16", "localhost"),
    "webhooks_retry_seconds": ("60,600,3600", "5m"),
    "webhooks_timeout_seconds": ("5", "0"),
    "smtp_url": ("smtps://bank:s3cret@mail.example.org", "mail.example.org"),
    "smtp_from": ("Our bank <bank@example.org>", "our bank"),
    "notice_targets": ("off", "dbus"),
    "notice_allow": ("192.168.1.0/24", "home"),
    "cache_mb": ("64", "-1"),
    "log_level": ("warning", "INFO"),
    "log_format": ("json", "xml"),
    "metrics_for": ("10.0.0.0/8", "all"),
    "log_addresses": ("on", "yes"),
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


PROVIDER = {"BANKDATA_OIDC_ISSUER": "https://id.example.org", "BANKDATA_OIDC_CLIENT_ID": "bankdata"}
"""Without which the other settings of the provider are refused."""


@pytest.mark.requirement("docs.settings")
def test_every_setting_has_an_example_here() -> None:
    assert TAKEN_AND_REFUSED.keys() == Settings.__dataclass_fields__.keys()


@pytest.mark.requirement("docs.settings")
@pytest.mark.parametrize("name", TAKEN_AND_REFUSED)
def test_the_default_of_the_table_an_example_and_a_counterexample(name: str) -> None:
    default, (example, refused) = Settings.__dataclass_fields__[name].metadata["default"], TAKEN_AND_REFUSED[name]
    set_too = PROVIDER if name.startswith("oidc_") else {}
    if name not in ("oidc_issuer", "oidc_client_id"):
        assert load({**set_too, PREFIX + name.upper(): default or ""}) == load(set_too)
    assert load({**set_too, PREFIX + name.upper(): example}) != load(set_too)
    if refused is not None:
        with pytest.raises(SettingError, match=PREFIX + name.upper()):
            load({**set_too, PREFIX + name.upper(): refused})


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
