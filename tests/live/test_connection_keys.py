"""What opens banks is encrypted, bound to its place, and worth nothing without a file that no backup holds."""

import errno
import json
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storage.bank_access import connection_secrets
from storage.bank_access.connection_keys import (
    KIND,
    ConnectionKeys,
    KeyMissing,
    SecretsUnreadable,
)
from storage.database import Database
from storage.keys.places import KeyFile, KeysUnusable, SealedKeys
from tests.conftest import NOW

pytestmark = pytest.mark.requirement("live.secrets")

SECRET = "https://user:pass@bridge.example/simplefin"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "connection-keys.json"


@pytest.fixture
def keys(file: Path) -> ConnectionKeys:
    return ConnectionKeys(file)


def in_the_store(database: Database, *secrets: str) -> ConnectionKeys:
    """Those of a store that several machines share, as one of them has it open."""
    return ConnectionKeys(SealedKeys(database, KIND, "\n".join(secrets) or "a secret", lambda: NOW))


def test_what_is_sealed_is_read_again_and_stands_nowhere_in_clear(database: Database, keys: ConnectionKeys) -> None:
    connection_secrets.keep(database, keys, "u1", "con_1", {"access_url": SECRET, "n": {"a": 1}})
    assert connection_secrets.find(database, keys, "u1", "con_1") == {"access_url": SECRET, "n": {"a": 1}}
    assert "pass" not in str(database.rows("SELECT field, sealed FROM connection_secrets"))
    connection_secrets.keep(database, keys, "u1", "con_1", {"access_url": "another"})
    assert connection_secrets.find(database, keys, "u1", "con_1") == {"access_url": "another"}


def test_keys_that_a_full_disk_does_not_take_leave_nothing_and_the_former_ones(
    keys: ConnectionKeys, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys.seal("x", about="y")
    before = file.read_bytes()

    def no_room(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(KeysUnusable, match="No space left on device"):
        KeyFile(file).replace(b"new", None)
    assert ([each.name for each in file.parent.iterdir()], file.read_bytes()) == ([file.name], before)


def test_the_file_of_keys_is_made_when_it_is_needed_and_is_private(keys: ConnectionKeys, file: Path) -> None:
    assert not file.exists()
    keys.seal("x", about="y")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o640)
    with pytest.raises(KeysUnusable, match="chmod 600"):
        ConnectionKeys(file)


def test_a_sealed_text_opens_in_its_own_place_only(keys: ConnectionKeys) -> None:
    sealed = keys.seal("x", about="con_1 pin")
    assert keys.open(sealed, about="con_1 pin") == "x"
    for wrong in (sealed[:-4] + "AAA=", sealed.replace(".", ".AAAA"), "nokey." + sealed.partition(".")[2]):
        with pytest.raises(SecretsUnreadable):
            keys.open(wrong, about="con_1 pin")
    with pytest.raises(SecretsUnreadable):
        keys.open(sealed, about="con_2 pin")


def test_rotating_encrypts_everything_anew_and_forgets_the_old_key(
    database: Database, keys: ConnectionKeys, file: Path
) -> None:
    connection_secrets.keep(database, keys, "u1", "con_1", {"pin": "12345"})
    before, old = database.rows("SELECT sealed FROM connection_secrets")[0]["sealed"], keys.ids
    elsewhere = ConnectionKeys(file)
    assert connection_secrets.rotate(database, keys) == 1
    assert keys.ids != old
    assert len(keys.ids) == 1
    assert connection_secrets.find(database, elsewhere, "u1", "con_1") == {"pin": "12345"}
    with pytest.raises(SecretsUnreadable):
        keys.open(before, about="con_1 pin")


@pytest.mark.engine("duckdb")
def test_connections_whose_key_is_gone_are_known_and_do_not_stop_a_rotation(
    database: Database, keys: ConnectionKeys, tmp_path: Path
) -> None:
    connection_secrets.keep(database, keys, "u1", "con_1", {"pin": "12345"})
    assert connection_secrets.unreadable_connections(database, keys) == []
    other = ConnectionKeys(tmp_path / "other.json")
    assert connection_secrets.unreadable_connections(database, other) == [("u1", "con_1")]
    with pytest.raises(KeyMissing):
        connection_secrets.rotate(database, other)
    assert not (tmp_path / "other.json").exists()
    other.seal("x", about="y")
    assert connection_secrets.rotate(database, other) == 0
    assert connection_secrets.find(database, keys, "u1", "con_1") == {"pin": "12345"}


def test_a_rotation_waits_for_what_is_sealed_and_not_yet_stored(
    database: Database, keys: ConnectionKeys, file: Path
) -> None:
    keys.seal("x", about="y")
    other = ConnectionKeys(file)
    rotating = threading.Thread(target=connection_secrets.rotate, args=(database, other))
    with keys.hold(), database.transaction() as session:
        connection_secrets.keep(session, keys, "u1", "con_1", {"pin": "12345"})
        rotating.start()
        rotating.join(0.2)
    rotating.join(60)
    assert not rotating.is_alive()
    assert connection_secrets.find(database, keys, "u1", "con_1") == {"pin": "12345"}


def test_a_folder_of_keys_that_is_not_there_is_named(tmp_path: Path) -> None:
    keys = ConnectionKeys(tmp_path / "nowhere" / "keys.json")
    with pytest.raises(KeysUnusable, match=r"nowhere/keys\.json cannot be used: No such file"), keys.alone():
        pass


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text[:-9],
        lambda _: "[]",
        lambda _: json.dumps({"keys": [{"id": "a", "key": "AA=="}]}),
        lambda text: f"{text}\udce9",
    ],
)
def test_a_damaged_file_of_keys_stops_the_start(keys: ConnectionKeys, file: Path, spoil: Callable[[str], str]) -> None:
    keys.seal("x", about="y")
    file.write_text(spoil(file.read_text("utf-8")), "utf-8", "surrogateescape")
    with pytest.raises(KeysUnusable, match="damaged"):
        ConnectionKeys(file)


def test_of_two_first_keys_that_are_made_at_once_the_first_one_seals(
    keys: ConnectionKeys, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, faster = os.link, ConnectionKeys(file)

    def link_late(*arguments: Any) -> None:
        monkeypatch.setattr("os.link", link)
        faster.seal("x", about="y")
        link(*arguments)

    monkeypatch.setattr("os.link", link_late)
    assert faster.open(keys.seal("x", about="y"), about="y") == "x"
    assert keys.ids == faster.ids
    assert len(keys.ids) == 1


def test_where_no_key_can_be_kept_nothing_is_sealed(tmp_path: Path) -> None:
    (tmp_path / "closed").symlink_to("closed")
    with pytest.raises(KeysUnusable, match=r"closed/keys\.json cannot be used: Too many levels"):
        ConnectionKeys(tmp_path / "closed" / "keys.json")
    (tmp_path / "file").write_text("")
    with pytest.raises(KeysUnusable, match=r"file/keys\.json cannot be used: Not a directory"):
        ConnectionKeys(tmp_path / "file" / "keys.json")
    (tmp_path / "keys.json").mkdir(mode=0o700)
    with pytest.raises(KeysUnusable, match=r"keys\.json cannot be used: Is a directory"):
        ConnectionKeys(tmp_path / "keys.json")


def test_a_file_of_keys_that_is_gone_holds_none_and_no_other_begins_where_it_may_not(tmp_path: Path) -> None:
    may = [True, False]
    keys = ConnectionKeys(tmp_path / "keys.json", may_begin=lambda: may.pop(0))
    keys.seal("x", about="y")
    (tmp_path / "keys.json").unlink()
    assert keys.ids == []
    with pytest.raises(KeyMissing):
        keys.seal("x", about="y")


def test_whether_any_secret_is_kept_is_known(database: Database, keys: ConnectionKeys) -> None:
    assert connection_secrets.is_any_kept(database) is False
    connection_secrets.keep(database, keys, "u1", "con_1", {"pin": "12345"})
    assert connection_secrets.is_any_kept(database) is True


def test_keys_in_the_store_are_those_of_all_machines_at_once(database: Database) -> None:
    here, there = in_the_store(database), in_the_store(database)
    connection_secrets.keep(database, here, "u1", "con_1", {"pin": "12345"})
    assert connection_secrets.find(database, there, "u1", "con_1") == {"pin": "12345"}
    assert here.ids[0] not in str(database.rows("SELECT content FROM documents"))
    first = here.ids
    assert connection_secrets.rotate(database, there) == 1
    assert here.ids == first, "nothing is asked for what is known already"
    assert connection_secrets.find(database, here, "u1", "con_1") == {"pin": "12345"}
    assert here.ids == there.ids
    with pytest.raises(KeysUnusable, match="does not open the keys of this store"):
        in_the_store(database, "another secret")


def test_a_key_of_the_store_outlives_a_rotation_for_what_another_machine_is_about_to_commit(database: Database) -> None:
    here, there = in_the_store(database), in_the_store(database)
    with here.hold():
        sealed = here.seal('"12345"', about="con_1 pin")
        with there.alone():
            pass  # nobody waits for anybody
        for _ in range(3):
            connection_secrets.rotate(database, there)
        database.execute("INSERT INTO connection_secrets VALUES ('u1', 'con_1', 'pin', $1)", sealed)
    assert connection_secrets.find(database, there, "u1", "con_1") == {"pin": "12345"}
    assert connection_secrets.rotate(database, here) == 1
    for _ in range(9):
        connection_secrets.rotate(database, here)
    assert there.look_again()
    assert len(there.ids) == 4
    with pytest.raises(SecretsUnreadable):
        there.open(sealed, about="con_1 pin")
    assert connection_secrets.find(database, there, "u1", "con_1") == {"pin": "12345"}


def test_keys_of_the_store_are_sealed_anew_with_another_secret(database: Database) -> None:
    both = in_the_store(database, "new", "old")
    both.reseal()
    assert both.ids == [], "none are made for that"
    sealed = in_the_store(database, "old").seal("x", about="y")
    both.look_again()
    both.reseal()
    assert in_the_store(database, "new").open(sealed, about="y") == "x"


def test_of_two_machines_that_change_the_keys_of_the_store_at_once_none_loses_any(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = in_the_store(database), in_the_store(database)
    replace = here.place.replace

    def replace_late(*arguments: Any) -> None:
        monkeypatch.setattr(here.place, "replace", replace)
        there.begin_rotation()
        replace(*arguments)

    monkeypatch.setattr(here.place, "replace", replace_late)
    mine = here.begin_rotation()
    assert here.ids[0] == mine
    assert here.ids[1:] == there.ids


def test_a_store_takes_over_the_keys_of_a_file_that_it_needs(
    database: Database, keys: ConnectionKeys, file: Path
) -> None:
    connection_secrets.keep(database, keys, "u1", "con_1", {"pin": "12345"})
    here = in_the_store(database)
    assert connection_secrets.take_over(database, here, file) == 1
    assert connection_secrets.take_over(database, here, file) == 0
    assert connection_secrets.find(database, here, "u1", "con_1") == {"pin": "12345"}
    rotated = keys.begin_rotation()  # by a server of before that still runs
    assert connection_secrets.take_over(database, here, file) == 0
    connection_secrets.keep(database, keys, "u1", "con_2", {"pin": "67890"})
    assert connection_secrets.take_over(database, here, file) == 1
    assert here.ids[1:] == [rotated]
    assert connection_secrets.find(database, here, "u1", "con_2") == {"pin": "67890"}
