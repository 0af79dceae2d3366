"""`bankdata serve` as it runs writes to an address of Apprise, and leaves nothing behind."""

import re
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from auth.principal import PAGE
from auth.scopes import ALL_SCOPES
from tests.imports.household import Household
from tests.service.conftest import start
from tests.ways.apprise.conftest import Receiver

SECONDS_MAX = 60
SETTINGS = {"NOTICE_TARGETS": "ntfy", "NOTICE_ALLOW": "127.0.0.0/8", "PUBLIC_URL": "http://127.0.0.1:8000"}


def until(is_so: Callable[[], object]) -> None:
    end = time.monotonic() + SECONDS_MAX
    while not is_so():
        assert time.monotonic() < end, "it never came to it"
        time.sleep(0.05)


@pytest.mark.long
@pytest.mark.requirement("notices.apprise")
def test_a_running_server_writes_there_and_takes_the_process_along(tmp_path: Path) -> None:
    eva = Household(tmp_path / "eva")
    token = eva.services.authorization.grants.issue_alone(
        user_id=eva.user.id, client_id=PAGE, scopes=frozenset(ALL_SCOPES), lifetime=timedelta(days=900)
    )
    eva.services.close()
    receiver = Receiver(None)
    server = start(tmp_path / "eva", command="serve", settings=SETTINGS)
    try:
        with server.bare(token) as client:
            made = client.post(
                "/notices/targets", json={"url": f"ntfy://eva:s3cret@127.0.0.1:{receiver.port}/bills"}
            ).json()
            where = f"/notices/targets/{made['id']}"
            until(lambda: receiver.heard)
            [(_, headers, said)] = receiver.heard
            assert headers["authorization"].startswith("Basic ")
            [code] = re.findall(r"\d{8}", said["title"])
            assert client.post(f"{where}/confirmation", json={"code": code}).json()["state"] == "working"
            client.post(f"{where}/test")
            until(lambda: len(receiver.heard) == 2)
            until(lambda: client.get(f"{where}/deliveries").json()["deliveries"][0]["state"] == "delivered")
        family = psutil.Process(server.process.pid).children(recursive=True)
        writing = [each for each in family if "apprise_process" in " ".join(each.cmdline())]
        assert len(writing) == 1
        assert "s3cret" not in str([[each.cmdline(), each.environ()] for each in family])
        assert server.stop() == 0
        until(lambda: not writing[0].is_running())
        assert "s3cret" not in server.log.read_text()
        assert "Traceback" not in server.log.read_text()
    finally:
        server.stop()
        receiver.server.shutdown()
        receiver.server.server_close()
