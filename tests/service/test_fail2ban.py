"""The filter that docs/operations.md shows, read by fail2ban itself over what a real server writes."""

import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.service.conftest import Served, running

pytestmark = pytest.mark.engine("duckdb")  # the engine has no part in it

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
SENDERS = {"203.0.113.7": "203.0.113.7", "2001:db8:1:2:3::4": "2001:db8:1:2::/64"}


def come_to_grief(served: Served, address: str) -> None:
    """Two wrong passwords, whose name tries to forge a line, and a registration that is refused."""
    forged = "\nWARNING bankdata.auth wrong password address=198.51.100.1"
    with httpx.Client(
        base_url=served.address, headers={"X-Forwarded-For": address}, timeout=60, trust_env=False
    ) as client:
        for _ in range(2):
            token = re.findall(r'name="form_token" value="([^"]*)"', client.get("/oauth/login").text)[0]
            form = {"form_token": token, "username": f"alice{forged}", "password": "wrong"}
            assert client.post("/oauth/login", data=form).status_code == 400
        asked = {"redirect_uris": ["http://bank.example/"], "client_name": f"App{forged}"}
        assert client.post("/oauth/register", json=asked).status_code == 400


@pytest.mark.requirement("oauth.log")
@pytest.mark.long
def test_fail2ban_finds_whom_to_ban_with_the_documented_filter(tmp_path: Path) -> None:
    if shutil.which("fail2ban-regex") is None:
        pytest.fail("fail2ban is missing: apt-get install fail2ban (docs/testing.md)")
    (definition,) = re.findall(r"```ini\n(\[Definition\]\n.+?)```", OPERATIONS.read_text(), re.DOTALL)
    (tmp_path / "bankdata.conf").write_text(definition)
    settings = {"LOG_ADDRESSES": "on", "TRUSTED_PROXIES": "127.0.0.1"}
    with running(tmp_path / "data", command="serve", settings=settings, is_measured=False) as served:
        for address in SENDERS:
            come_to_grief(served, address)
    found = subprocess.run(
        ["fail2ban-regex", "-o", "ip", served.log, tmp_path / "bankdata.conf"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert found.stdout.split() == [address for address in SENDERS.values() for _ in range(3)]
