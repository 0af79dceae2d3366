"""`bankdata serve` as it runs, with a mail server that is there: letters outlive a kill, and one of several processes
sends each."""

import re
import signal
from datetime import timedelta
from pathlib import Path

import pytest

from auth.principal import PAGE
from auth.scopes import ALL_SCOPES
from tests.imports.household import Household
from tests.service.conftest import Served, start
from tests.ways.conftest import Json, MailServer
from tests.webhooks.test_webhook_service import until

pytestmark = [pytest.mark.requirement("notices.ways"), pytest.mark.long]


def page_of(eva: Household) -> str:
    """A token of the person's page."""
    server = eva.services.authorization
    server.clients.ensure_page()
    scopes, lifetime = frozenset(ALL_SCOPES), timedelta(days=9)
    return server.grants.issue_alone(user_id=eva.user.id, client_id=PAGE, scopes=scopes, lifetime=lifetime)


def served(folder: Path, mail: MailServer, *arguments: str) -> Served:
    settings = {
        "SMTP_URL": f"smtp://127.0.0.1:{mail.port}",
        "SMTP_FROM": "bank@example.org",
        "PUBLIC_URL": "http://127.0.0.1:8000",  # so that a token is good at the next server, too
    }
    return start(folder, command="serve", arguments=list(arguments), settings=settings, is_measured=False)


def added(server: Served, token: str, mail: MailServer) -> str:
    """The path of a target that works."""
    with server.bare(token) as client:
        made: Json = client.post("/notices/targets", json={"email": "eva@example.org"}).json()
        until(lambda: mail.came)
        [code] = re.findall(r"\b\d{8}\b", str(mail.came.pop()[2]["Subject"]))
        path = f"/notices/targets/{made['id']}"
        assert client.post(f"{path}/confirmation", json={"code": code}).json()["state"] == "working"
    return path


def test_a_letter_on_its_way_when_the_server_is_killed_is_sent_again(tmp_path: Path, server: MailServer) -> None:
    eva = Household(tmp_path / "eva")
    token = page_of(eva)
    eva.services.close()
    running = served(tmp_path / "eva", server)
    try:
        path = added(running, token, server)
        server.silent.add("DATA")
        with running.bare(token) as client:
            assert client.post(f"{path}/test").status_code == 202
        until(lambda: server.said[-1] == "DATA")
        running.stop(signal.SIGKILL)
        server.silent.clear()
        running = served(tmp_path / "eva", server)
        until(lambda: server.came)
        with running.bare(token) as client:
            until(lambda: client.get(f"{path}/deliveries").json()["deliveries"][0]["state"] == "delivered")
        assert [str(mail["Subject"]) for _, _, mail in server.came] == ["A test"]
        server.silent.add("DATA")
        with running.bare(token) as client:
            assert client.post(f"{path}/test").status_code == 202
        until(lambda: server.said[-1] == "DATA")
        assert running.stop() == 0  # no letter keeps it from stopping
        log = running.log.read_text()
        assert "Traceback" not in log
        assert "eva@example" not in log
    finally:
        running.stop()


@pytest.mark.engine("postgresql")
def test_of_several_processes_one_sends_each_letter(tmp_path: Path, server: MailServer) -> None:
    eva = Household(tmp_path / "eva")
    token = page_of(eva)
    eva.services.close()
    running = served(tmp_path / "eva", server, "--workers", "3")
    try:
        path = added(running, token, server)
        with running.bare(token) as client:
            for _ in range(8):
                assert client.post(f"{path}/test").status_code == 202
            until(
                lambda: (
                    {each["state"] for each in client.get(f"{path}/deliveries").json()["deliveries"]} == {"delivered"}
                )
            )
        assert len({mail["Message-ID"] for _, _, mail in server.came}) == len(server.came) == 8
        assert running.stop() == 0
        assert "Traceback" not in running.log.read_text()
    finally:
        running.stop()
