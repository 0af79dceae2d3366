"""The file of keys where several processes use it, and where it is missing: nothing is lost, and nothing changes."""

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from subprocess import PIPE, STDOUT, CompletedProcess, Popen, run
from typing import NoReturn

import pytest

from auth.principal import Principal
from handlers.commands.control_socket import CommandError
from handlers.commands.upkeep import check
from handlers.operations.connections import list_connections
from handlers.web.request import Request
from handlers.work.services import Services, open_services
from handlers.work.sync.scheduler import PLAN_EVERY, Scheduler
from handlers.work.sync.stored_secrets import KEY_MISSING
from storage import connections, jobs, users
from storage.bank_access import connection_secrets
from storage.bank_access.connection_keys import FILE_NAME, ConnectionKeys, KeyMissing
from storage.database import StoreUnavailable
from tests.conftest import NOW, empty_folder
from tests.engines import ENGINE
from tests.service.conftest import BANKDATA, Said, environment

pytestmark = pytest.mark.requirement("live.secrets")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The data folder of a store with one connection, whose secrets are sealed with the key beside it: on PostgreSQL,
    too, as before such stores had the keys."""
    made = empty_folder(tmp_path / "data")
    with closing(open_services(ENGINE.settings(made))) as services:
        eva = users.add(
            services.everybody, name="eva", password_hash=None, has_subscription=True, home_currency="EUR", now=NOW
        )
        connection = connections.add(
            services.everybody,
            user_id=eva.id,
            user_name="eva",
            connector="simplefin",
            bank_name="SimpleFIN",
            settings={},
            now=NOW,
        )
        secrets = {"access_url": "https://u:p@bridge.simplefin.org/simplefin"}
        connection_secrets.keep(services.everybody, ConnectionKeys(made / FILE_NAME), eva.id, connection.id, secrets)
    return made


@pytest.fixture
def elsewhere(folder: Path, tmp_path: Path) -> Iterator[Services]:
    """The same store, opened for a command on a machine that does not have the file."""
    with closing(open_services(ENGINE.settings(folder, CONNECTION_KEYS=str(tmp_path / FILE_NAME)))) as services:
        yield services


def command(folder: Path, *arguments: str, keys: Path) -> "CompletedProcess[str]":
    return run(
        [BANKDATA, *arguments, "--data", folder],
        env={**environment(CONNECTION_KEYS=str(keys)), **ENGINE.environment(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.long
def test_a_command_without_the_file_of_keys_says_so_and_changes_nothing(folder: Path, tmp_path: Path) -> None:
    missing = tmp_path / FILE_NAME
    place = missing if ENGINE.name == "duckdb" else "The document of connection keys in the store"
    sentence = (
        f"{place} does not hold the key of 1 of this store's bank connections, so they are not asked from here.\n"
    )
    synced = command(folder, "sync", "--user", "eva", keys=missing)
    assert synced.stderr.startswith(sentence)
    assert f"SimpleFIN\tfailed: {KEY_MISSING}" in synced.stdout
    rotated = command(folder, "keys", "rotate", "--connections", keys=missing)
    assert (rotated.returncode, rotated.stdout) == (1, "")
    how = (
        "bring the file back"
        if ENGINE.name == "duckdb"
        else f"restart the service on the machine that has them in {FILE_NAME}"
    )
    assert f"{place} does not hold the key of this store's bank connections: {how}. Nothing was changed." in (
        rotated.stderr
    )
    assert not missing.exists()
    listed = command(folder, "connections", "list", "--user", "eva", keys=folder / FILE_NAME)
    assert listed.stdout.rpartition("\t")[2] == "ACTIVE\n"
    taken_over = f"the keys of bank connections are in the store now, sealed: {folder / FILE_NAME} is read no more"
    assert (listed.stderr == "") if ENGINE.name == "duckdb" else listed.stderr.startswith(taken_over)


@pytest.mark.engine("duckdb")
def test_connections_wait_for_the_file_of_keys_and_go_on_when_it_is_back(folder: Path) -> None:
    file, away = folder / FILE_NAME, folder / "away.json"
    file.rename(away)
    with closing(open_services(ENGINE.settings(folder), for_server=True)) as services:
        store = services.everybody

        def seen() -> tuple[str, str | None]:
            caller = Principal(
                user_id=users.get_by_name(store, "eva").id, client_id="", scopes=frozenset(), grant_id=None,
                has_subscription=True,
            )  # fmt: skip
            asked = Request(caller=caller, method="", path="", query="", headers={}, client_address="")
            (found,) = list_connections(services, asked)["connections"]
            return found["status"], found["message"]

        assert seen() == ("REAUTH_REQUIRED", KEY_MISSING)
        (connection,) = connections.of_user(store, users.get_by_name(store, "eva").id)
        assert services.sync_engine.start(connection).error == KEY_MISSING
        said = Said()
        with pytest.raises(CommandError):
            check(services, said)
        assert f"WRONG      {services.missing_key} Bring the file back; the connections then go on by themselves." in (
            said.lines
        )
        services.clock.offset += PLAN_EVERY
        services.scheduler.round()
        assert seen() == ("REAUTH_REQUIRED", KEY_MISSING)
        away.rename(file)
        services.clock.offset += PLAN_EVERY
        services.scheduler.round()
        assert seen() == ("ACTIVE", None)
        assert services.missing_key is None


def test_a_store_that_is_away_is_no_missing_key(elsewhere: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> NoReturn:
        raise StoreUnavailable

    assert elsewhere.missing_key is not None
    monkeypatch.setattr(connection_secrets, "unreadable_connections", away)
    assert elsewhere.missing_key is None


@pytest.mark.engine("duckdb")
def test_a_file_of_keys_that_is_back_at_the_next_start_mends_only_what_its_absence_broke(folder: Path) -> None:
    file, away = folder / FILE_NAME, folder / "away.json"
    with closing(open_services(ENGINE.settings(folder))) as services:
        (first,) = connections.of_connectors(services.everybody, ["simplefin"])
        second = connections.add(
            services.everybody, user_id=first.user_id, user_name="eva", connector="simplefin", bank_name="Other",
            settings={}, now=NOW,
        )  # fmt: skip
        connection_secrets.keep(services.everybody, services.connection_keys, first.user_id, second.id, {"a": "b"})
        connections.need_user(services.everybody, first.user_id, second.id)
    for source, target in ((file, away), (away, file)):
        source.rename(target)
        open_services(ENGINE.settings(folder), for_server=True).close()
    with closing(open_services(ENGINE.settings(folder))) as services:
        assert connections.statuses(services.everybody, first.user_id) == {
            first.id: "ACTIVE", second.id: "REAUTH_REQUIRED",
        }  # fmt: skip


@pytest.mark.engine("postgresql")
def test_of_several_rotations_at_once_none_loses_a_key_in_use(folder: Path) -> None:
    secrets = {f"field {number}": "x" * 50 for number in range(300)}
    with closing(open_services(ENGINE.settings(folder))) as services:
        (connection,) = connections.of_connectors(services.everybody, ["simplefin"])
        of = (connection.user_id, connection.id)
        connection_secrets.keep(services.everybody, services.connection_keys, *of, secrets)
    rotate = [str(BANKDATA), "keys", "rotate", "--connections", "--data", str(folder)]
    at_once = [
        Popen(rotate, env={**environment(), **ENGINE.environment(folder)}, stdout=PIPE, stderr=STDOUT, text=True)
        for _ in range(2)
    ]
    assert [each.communicate(timeout=120)[0] for each in at_once] == ["Encrypted 300 secrets anew.\n"] * 2
    with closing(open_services(ENGINE.settings(folder))) as services:
        assert connection_secrets.find(services.everybody, services.connection_keys, *of) == secrets
        assert len(services.connection_keys.ids) == 3


def test_a_machine_without_the_key_takes_no_planned_sync_from_those_that_have_it(elsewhere: Services) -> None:
    engine, store = elsewhere.sync_engine, elsewhere.everybody
    (connection,) = connections.of_connectors(store, ["simplefin"])
    scheduler = Scheduler(
        engine, elsewhere.store, {"simplefin": elsewhere.connecting.sources["simplefin"]}, elsewhere.clock,
        on_new_day=lambda _: None, plan=elsewhere.settings.schedule,
    )  # fmt: skip
    elsewhere.clock.offset += PLAN_EVERY
    scheduler.round()
    assert store.rows("SELECT planned_at FROM connections") == [{"planned_at": None}]
    assert engine.start(connection).error == KEY_MISSING
    assert connections.of_connectors(store, ["simplefin"]) == [connection]


@pytest.mark.engine("postgresql")
def test_a_shared_store_gets_no_second_key_and_a_job_waits_for_the_machine_that_has_the_first(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    there = ENGINE.settings(folder, CONNECTION_KEYS=str(tmp_path / FILE_NAME))
    with closing(open_services(there, for_server=True)) as elsewhere:
        (connection,) = connections.of_connectors(elsewhere.everybody, ["simplefin"])
        job = jobs.start(
            elsewhere.everybody,
            user_id=connection.user_id,
            connection_id=connection.id,
            cooldown=timedelta(),
            now=elsewhere.clock.now(),
        )
        assert job is not None
        assert elsewhere.sync_engine.read(job.user_id, job.id) == job
        with pytest.raises(KeyMissing):
            elsewhere.connecting.begin(job.user_id, "simplefin", browser=None)
        assert connections.of_connectors(elsewhere.everybody, ["simplefin"]) == [connection]
    assert "does not hold the key of 1 of" in caplog.text


@pytest.mark.engine("duckdb")
def test_the_server_of_a_store_of_its_own_has_its_people_connect_again_when_the_file_is_lost(folder: Path) -> None:
    (folder / FILE_NAME).unlink()
    with closing(open_services(ENGINE.settings(folder), for_server=True)) as services:
        (row,) = services.everybody.rows("SELECT user_id, status FROM connections")
        assert row["status"] == "REAUTH_REQUIRED"
        assert services.connecting.begin(row["user_id"], "simplefin", browser=None).step is not None
    assert (folder / FILE_NAME).exists()


@pytest.mark.engine("postgresql")
def test_with_one_connection_to_the_database_the_first_key_is_made_and_seals(tmp_path: Path) -> None:
    one = ENGINE.settings(tmp_path / "data", DATABASE_POOL="1")
    with closing(open_services(one)) as services, closing(open_services(one)) as other:
        eva = users.add(
            services.everybody, name="eva", password_hash=None, has_subscription=True, home_currency="EUR", now=NOW
        )
        attempt = services.connecting.begin(eva.id, "simplefin", browser=None)
        assert other.connecting.find(eva.id, attempt.id, browser=None).step is not None


@pytest.mark.engine("postgresql")
def test_a_file_that_is_taken_over_later_is_no_reason_not_to_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> NoReturn:
        raise StoreUnavailable

    monkeypatch.setattr(connection_secrets, "take_over", away)
    open_services(ENGINE.settings(folder)).close()
    monkeypatch.undo()
    with closing(open_services(ENGINE.settings(folder))) as services:
        assert services.missing_key is None
