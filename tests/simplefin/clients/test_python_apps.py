"""Two apps from PyPI, run as their users run them: they claim, read, sync twice without a double, meet a revocation."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.simplefin.clients.conftest import Behind, serving

FOLDER = Path(__file__).parent

pytestmark = [pytest.mark.engine("duckdb"), pytest.mark.requirement("simplefin.real-apps")]


@pytest.fixture(scope="module")
def behind(copied: Callable[[], Path]) -> Iterator[Behind]:
    yield from serving(copied())


@pytest.fixture(scope="session")
def python() -> str:
    """The Python that has the apps."""
    command = ["bash", str(FOLDER / "install.sh"), sys.executable]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout.strip()


def run(python: str, *arguments: object) -> Any:
    """What an app says."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("BANKDATA_", "COVERAGE_"))}
    command = [python, str(FOLDER / "python_apps.py"), *map(str, arguments)]
    done = subprocess.run(command, env=clean, check=True, capture_output=True, text=True, timeout=120)
    return json.loads(done.stdout.splitlines()[-1])


def bank_of(account: dict[str, Any]) -> str:
    return str(account["bankConnection"]["bankName"])


@pytest.mark.long
def test_the_library_of_home_assistant_reads_until_it_is_revoked(behind: Behind, python: str) -> None:
    token = behind.setup_token("Home Assistant")
    url = run(python, "simplefin4py", "claim", token)
    assert run(python, "simplefin4py", "claim", token) == {"failed": "SimpleFinClaimError"}
    read = run(python, "simplefin4py", "read", url)
    assert read["errors"] == []
    told = {id_: (Decimal(amount), name, bank) for id_, (amount, name, bank, _) in read["accounts"].items()}
    assert told == {
        each["id"]: (Decimal(str(each["balance"])), each["accountName"] or bank_of(each), bank_of(each))
        for each in behind.accounts
    }
    assert all(rows for *_, rows in read["accounts"].values())
    behind.revoke("Home Assistant")
    assert run(python, "simplefin4py", "read", url) == {"failed": "SimpleFinAuthError"}


@pytest.mark.long
def test_an_app_with_a_store_of_its_own_syncs_twice_without_a_double(
    behind: Behind, python: str, tmp_path: Path
) -> None:
    url = run(python, "goetta", "claim", behind.setup_token("Goetta"))
    first = run(python, "goetta", "read", url, tmp_path)
    assert first["new"] == first["rows"] > 100
    assert first["told"] == first["different"] == behind.count_of_rows
    assert first["warnings"] == []
    second = run(python, "goetta", "read", url, tmp_path)
    assert (second["new"], second["rows"], second["total"]) == (0, first["rows"], first["total"])
    behind.revoke("Goetta")
    assert run(python, "goetta", "read", url, tmp_path) == {"failed": "BridgeAuthError"}
