"""Actual 26.9.0, its server and its engine: accounts are linked, synced twice without a double, a revocation is met."""

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.explanations.conftest import body_of
from tests.simplefin.clients.conftest import Behind, serving

FOLDER = Path(__file__).parent / "actual"
INSTALL = FOLDER.parents[2] / "clients" / "npm" / "install.sh"

pytestmark = [pytest.mark.engine("duckdb"), pytest.mark.requirement("simplefin.real-apps")]


@pytest.fixture
def behind(copied: Callable[[], Path]) -> Iterator[Behind]:
    yield from serving(copied())


@pytest.fixture(scope="session")
def actual() -> Path:
    """A folder with Actual installed."""
    command = ["bash", str(INSTALL), str(FOLDER), "--foreground-scripts"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=900)
    return Path(done.stdout.splitlines()[-1])


def clean(**settings: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BANKDATA_", "COVERAGE_"))}
    return {**kept, **settings}


@contextmanager
def server_of(actual: Path, folder: Path) -> Iterator[str]:
    """The server of Actual over an empty folder; its address."""
    folder.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = actual / "node_modules" / "@actual-app" / "sync-server" / "build" / "bin" / "actual-server.js"
    settings = clean(ACTUAL_DATA_DIR=str(folder), ACTUAL_PORT=str(port), ACTUAL_HOSTNAME="127.0.0.1")
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(["node", program], env=settings, cwd=folder, stdout=log, stderr=log)
    try:
        address, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 60
        while not _answers(address):
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, (folder / "log").read_text()
        yield address
    finally:
        process.kill()
        process.wait()


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/health", timeout=60, trust_env=False).is_success
    except httpx.TransportError:
        time.sleep(0.05)
        return False


@contextmanager
def engine_of(actual: Path, *arguments: object, folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """A person's Actual, which waits for a line after each of its own."""
    program = actual / "actual.mjs"
    program.write_text((FOLDER / "actual.mjs").read_text())
    command = ["node", str(program), *map(str, arguments)]
    with (folder / "engine.log").open("w") as log:
        process = subprocess.Popen(
            command, env=clean(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder
        )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def said(process: "subprocess.Popen[str]", folder: Path) -> dict[str, Any]:
    """What it says next."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("@"):
            found: dict[str, Any] = json.loads(line[1:])
            return found
    raise AssertionError((folder / "engine.log").read_text())


def go_on(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


@pytest.mark.long
def test_actual_links_syncs_twice_without_a_double_and_meets_a_revocation(
    behind: Behind, actual: Path, tmp_path: Path
) -> None:
    with (
        server_of(actual, tmp_path / "server") as address,
        engine_of(actual, behind.setup_token("Actual"), address, tmp_path / "budget", folder=tmp_path) as engine,
    ):
        linked = said(engine, tmp_path)
        assert linked["errors"] == []
        balances = {id_: (each["balance"], each["bank"], each["status"]) for id_, each in linked["accounts"].items()}
        assert balances == {
            each["id"]: (int(Decimal(str(each["balance"])) * 100), each["bankConnection"]["bankName"], "ok")
            for each in behind.accounts
        }
        rest = behind.service.client(behind.user_id)
        for id_, each in linked["accounts"].items():
            booked = sorted((row, day, cents) for row, day, cents, is_booked in each["rows"] if is_booked)
            assert booked == by_rest(rest, id_, since=min(day for _, day, _ in booked))
        go_on(engine)
        again = said(engine, tmp_path)
        assert (again["added"], again["errors"], again["accounts"]) == (0, [], linked["accounts"])
        behind.revoke("Actual")
        go_on(engine)
        ended = said(engine, tmp_path)
        assert {each["status"] for each in ended["accounts"].values()} == {"reauth-required"}
        assert {id_: each["rows"] for id_, each in ended["accounts"].items()} == {
            id_: each["rows"] for id_, each in linked["accounts"].items()
        }


def by_rest(rest: Any, account_id: str, *, since: str) -> list[tuple[str, str, int]]:
    """The bookings of an account from a day on: id, day and cents."""
    rows: list[tuple[str, str, int]] = []
    page = pages = 1
    while page <= pages:
        body = body_of(rest, "/transactions", accountIds=account_id, dateFrom=since, perPage=100, page=page)
        pages, page = body["pagination"]["pageCount"], page + 1
        for row in body["transactions"]:
            rows.append((row["id"], row["bookingDate"][:10], round(Decimal(str(row["amount"])) * 100)))
    return sorted(rows)
