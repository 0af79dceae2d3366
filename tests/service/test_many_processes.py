"""Several processes over one PostgreSQL: races have one winner, revocations are heard of, who dies is replaced."""

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from subprocess import run

import psutil
import pytest

from auth.errors import KeysUnusable
from handlers.services import open_services
from tests.engines import ENGINE
from tests.service.conftest import BANKDATA, Served, environment, running

pytestmark = pytest.mark.engine("postgresql")

ADDRESS = {"PUBLIC_URL": "http://127.0.0.1:9999"}  # as whom commands make tokens, which do not ask the server
CSV = "Date,Description,Amount,Currency\n" + "".join(f"2026-03-{day:02},shop {day},-3.50,EUR\n" for day in range(1, 29))


def command(folder: Path, *arguments: str) -> str:
    """A command in a process of its own, as a person types it; what it prints."""
    done = run(
        [BANKDATA, *arguments, "--data", folder],
        env={**environment(**ADDRESS), **ENGINE.environment(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Two workers."""
    folder = tmp_path_factory.mktemp("several") / "data"
    command(folder, "users", "add", "eva", "--random")
    with running(folder, command="serve", settings=ADDRESS, arguments=["--workers", "2"]) as served:
        yield served
        assert "Traceback" not in served.log.read_text()


def token(served: Served, user: str = "eva") -> str:
    return command(served.folder, "token", "--user", user)


def workers(served: Served) -> list[psutil.Process]:
    found = []
    for each in psutil.Process(served.process.pid).children():
        with suppress(psutil.Error):  # it ends just now
            if each.status() != psutil.STATUS_ZOMBIE and "spawn_main" in " ".join(each.cmdline()):
                found.append(each)
    return found


def answers(served: Served, bearer: str, times: int) -> set[int]:
    """Statuses of requests on connections of their own, which reach all workers."""

    def ask(_: int) -> int:
        with served.bare(bearer) as client:
            return client.get("/accounts").status_code

    with ThreadPoolExecutor(8) as pool:
        return set(pool.map(ask, range(times)))


@pytest.mark.requirement("workers.revoked")
def test_a_subscription_that_ends_by_a_command_ends_in_every_process_within_a_second(several: Served) -> None:
    bearer = token(several)
    assert answers(several, bearer, 20) == {200}
    command(several.folder, "users", "subscription", "eva", "off")
    time.sleep(1)
    assert answers(several, bearer, 20) == {403}
    command(several.folder, "users", "subscription", "eva", "on")
    time.sleep(1)
    assert answers(several, bearer, 20) == {200}


@pytest.mark.requirement("workers.one-winner")
def test_one_file_imported_by_four_processes_at_once_is_there_once(several: Served, tmp_path: Path) -> None:
    file = tmp_path / "march.csv"
    file.write_text(CSV)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: command(several.folder, "import", "--user", "eva", str(file)), range(4)))
    bearer = token(several)
    with several.bare(bearer) as client:
        ids = [each["id"] for each in client.get("/accounts").json()["accounts"]]
        found = client.get("/transactions", params={"accountIds": ",".join(ids), "perPage": 1}).json()
    assert found["pagination"]["total"] == 28


@pytest.mark.requirement("workers.one-winner")
def test_a_name_added_by_four_processes_at_once_in_any_case_is_one_user(several: Served) -> None:
    def add(name: str) -> bool:
        with suppress(AssertionError):
            command(several.folder, "users", "add", name, "--random")
            return True
        return False

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(add, ["ada", "Ada", "ADA", "aDA"])) == 1


@pytest.mark.requirement("workers.watched")
def test_a_worker_that_dies_is_replaced_and_all_end_with_the_one_that_was_typed(several: Served) -> None:
    before = workers(several)
    assert len(before) == 2
    before[0].send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (
        len(now := workers(several)) == 2 and before[0].pid not in {each.pid for each in now}
    ):
        time.sleep(0.1)
    assert len(workers(several)) == 2
    assert answers(several, token(several), 20) == {200}
    ended = workers(several)
    assert several.stop() == 0
    assert not any(each.is_running() for each in ended)


@pytest.mark.requirement("keys.sealed")
def test_another_secret_does_not_open_the_keys_and_a_copy_of_the_store_names_none(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with closing(open_services(ENGINE.settings(folder))) as services:
        before = services.authorization.jwks()
        kid = services.authorization.rotate_keys()
        (sealed,) = [row["content"] for row in services.database.rows("SELECT content FROM documents")]
        assert "PRIVATE KEY" not in sealed
        assert services.authorization.keys.path is None
    with closing(open_services(ENGINE.settings(folder))) as services:
        assert services.authorization.keys.active().kid == kid
        assert before["keys"][0] in services.authorization.jwks()["keys"]
    for secret, reason in (("another secret of 32 characters or more", "does not open"), (" ", "is missing")):
        with pytest.raises(KeysUnusable, match=reason):
            open_services(ENGINE.settings(folder, KEYS_SECRET=secret))
