"""No secret anywhere outside its field: not in the store, backups, logs, outputs, traces or lists of processes."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from connectors.exchange_protocol import as_text
from connectors.outgoing_http import Exchange
from tests.live.conftest import Live
from tests.simulators.simplefin import booking

pytestmark = pytest.mark.requirement("live.secrets")


def command_lines() -> bytes:
    """What anybody on this machine can read of all processes."""
    found = b""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += path.read_bytes() + (path.parent / "environ").read_bytes()
        except OSError:
            continue
    return found


def test_no_secret_is_found_where_anybody_else_reads(live: Live, tmp_path: Path) -> None:
    customer, today = live.simplefin.customer(), datetime.now(UTC).date()
    customer.account("1", "5.00", booking("a", today, "-1.00", "Cafe Secretive"), day=today)
    user, trace = live.user(), tmp_path / "trace.txt"
    live.simplefin.faults.append("503")
    asking = ("connect", "simplefin", "--user", user, "--trace", str(trace))
    broken = live.bankdata(*asking, stdin=f"{customer.token}\n")
    assert broken.returncode == 1
    trace.unlink()
    done = live.bankdata(*asking, stdin=f"{customer.token}\n")
    assert done.returncode == 0, done.stderr
    seen = command_lines()
    live.simplefin.faults.extend(["hang-up"])
    live.sync(user)
    assert live.bankdata("backup").returncode == 0
    for path in live.served.folder.rglob("*"):
        if path.is_file() and path.name != "connection-keys.json":
            seen += path.read_bytes()
    seen += live.served.log.read_bytes() + trace.read_bytes()
    seen += "".join((broken.stdout, broken.stderr, done.stdout, done.stderr)).encode()
    assert customer.password.encode() not in seen
    assert customer.token.encode() not in seen
    assert not list((live.served.folder / "backups").rglob("connection-keys.json"))
    assert (live.served.folder / "connection-keys.json").stat().st_mode & 0o777 == 0o600
    assert trace.stat().st_mode & 0o777 == 0o600
    assert b"GET 127.0.0.1" in trace.read_bytes()
    assert b"Secretive" not in trace.read_bytes()


def test_a_trace_shows_shapes_and_error_codes_and_nothing_else() -> None:
    said = as_text(
        Exchange(
            method="POST",
            host="api.example",
            path="/sessions/8f3kAbc",
            parameters={"date_from": "2026-01-31"},
            status=401,
            content_type="application/json",
            body=b'{"error": "EXPIRED_SESSION", "message": "Max 12", "list": [1.5, null, true]}',
        )
    )
    assert said == (
        "POST api.example/sessions/0x0xXxx?date_from=0000-00-00\n  401 application/json\n".replace("X", "x")
        + '  {"error": "EXPIRED_SESSION", "message": "xxx 00", "list": ["0.0", null, true]}\n'
    )
