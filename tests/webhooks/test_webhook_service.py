"""`bankdata serve --webhooks` as it runs: a receiver that is there, a server that is killed."""

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.imports.household import Household
from tests.service.conftest import Served, running, start
from tests.service.test_many_processes import command
from tests.service.test_many_processes import token as token_of
from tests.webhooks.conftest import Json, Receiver, checked

SECONDS_MAX = 120  # what a killed process had on its way is taken over by others after 45
SETTINGS = {
    "WEBHOOKS_ALLOW": "127.0.0.0/8",
    "WEBHOOKS_RETRY_SECONDS": "1,1,1",
    "PUBLIC_URL": "http://127.0.0.1:8000",  # so that a token is good at the next server, too
}


def served(folder: Path, **how: object) -> Served:
    return start(folder, command="serve", arguments=["--webhooks"], settings=SETTINGS, **how)  # type: ignore[arg-type]


def until(is_so: Callable[[], object]) -> None:
    end = time.monotonic() + SECONDS_MAX
    while not is_so():
        assert time.monotonic() < end, "it never came to it"
        time.sleep(0.05)


@pytest.mark.requirement("webhooks.service")
@pytest.mark.long
def test_a_running_server_tells_tries_again_and_outlives_a_kill(tmp_path: Path, receiver: Receiver) -> None:
    Household(tmp_path / "eva").services.close()
    server = served(tmp_path / "eva", is_measured=False)
    heard = receiver.heard
    try:
        token = server.token("eva")
        receiver.waits["/slow"] = threading.Event()
        with server.bare(token) as client:
            made: Json = client.post("/webhooks", json={"url": f"{receiver.address}/a"}).json()
            slow: Json = client.post("/webhooks", json={"url": f"{receiver.address}/slow"}).json()
        receiver.answers["/a"] = [(500, {}), (307, {"Location": f"{receiver.address}/elsewhere"})]
        server.command("connect", connector="demo", user="eva", bank=None, settings={"accounts": 1}, fault=None)
        until(lambda: {checked(each, made["secret"])["type"] for each in heard["/a"]} >= {"sync.completed"})
        until(lambda: len(heard["/a"]) >= 4)  # two events, one of them or both again
        until(lambda: heard["/slow"])
        server.stop(signal.SIGKILL)
        lost = checked(heard["/slow"][0], slow["secret"])["id"]
        receiver.waits.pop("/slow").set()
        server = served(tmp_path / "eva")
        # told again under the id that it had
        until(lambda: [checked(each, slow["secret"])["id"] for each in heard["/slow"]].count(lost) == 2)
        path = f"/webhooks/{slow['id']}/deliveries"
        with server.bare(token) as client:
            until(lambda: all(each["state"] == "delivered" for each in client.get(path).json()["deliveries"]))
        assert heard["/elsewhere"] == []
        assert server.stop() == 0
        assert "Traceback" not in server.log.read_text()
    finally:
        server.stop()


@pytest.mark.engine("postgresql")
@pytest.mark.requirement("webhooks.service")
def test_of_several_processes_each_delivery_is_sent_by_one(tmp_path: Path, receiver: Receiver) -> None:
    command(tmp_path / "eva", "users", "add", "eva", "--random")
    settings = {**SETTINGS, "PUBLIC_URL": "http://127.0.0.1:9999"}
    arguments = ["--webhooks", "--workers", "3"]
    with running(tmp_path / "eva", command="serve", arguments=arguments, settings=settings) as server:
        with server.bare(token_of(server)) as client:
            made: Json = client.post("/webhooks", json={"url": f"{receiver.address}/a"}).json()
            path = f"/webhooks/{made['id']}"
            for _ in range(30):
                assert client.post(f"{path}/test").status_code == 202
            until(
                lambda: (
                    {each["state"] for each in client.get(f"{path}/deliveries").json()["deliveries"]} == {"delivered"}
                )
            )
        said = [checked(each, made["secret"])["id"] for each in receiver.heard["/a"]]
        assert (len(said), len(set(said))) == (30, 30)
        assert server.stop() == 0
        assert "Traceback" not in server.log.read_text()
