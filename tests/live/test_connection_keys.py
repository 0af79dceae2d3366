"""What opens banks is encrypted, bound to its place, and worth nothing without a file that no backup holds."""

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
    ConnectionKeys,
    ConnectionKeysUnusable,
    KeyMissing,
    SecretsUnreadable,
)
from storage.database import Database

pytestmark = pytest.mark.requirement("live.secrets")

SECRET = "https://user:pass@bridge.example/simplefin"


@pytest.fixture
def keys(tmp_path: Path) -> ConnectionKeys:
    return ConnectionKeys(tmp_path / "connection-keys.json")


def test_what_is_sealed_is_read_again_and_stands_nowhere_in_clear(database: Database, keys: ConnectionKeys) -> None:
    connection_secrets.keep(database, keys, "u1", "con_1", {"access_url": SECRET, "n": {"a": 1}})
    assert connection_secrets.find(database, keys, "u1", "con_1") == {"access_url": SECRET, "n": {"a": 1}}
    assert "pass" not in str(database.rows("SELECT field, sealed FROM connection_secrets"))
    connection_secrets.keep(database, keys, "u1", "con_1", {"access_url": "another"})
    assert connection_secrets.find(database, keys, "u1", "con_1") == {"access_url": "another"}


def test_the_file_of_keys_is_made_when_it_is_needed_and_is_private(keys: ConnectionKeys) -> None:
    assert not keys.path.exists()
    keys.seal("x", about="y")
    assert stat.S_IMODE(keys.path.stat().st_mode) == 0o600
    keys.path.chmod(0o640)
    with pytest.raises(ConnectionKeysUnusable, match="chmod 600"):
        ConnectionKeys(keys.path)


def test_a_sealed_text_opens_in_its_own_place_only(keys: ConnectionKeys) -> None:
    sealed = keys.seal("x", about="con_1 pin")
    assert keys.open(sealed, about="con_1 pin") == "x"
    for wrong in (sealed[:-4] + "AAA=", sealed.replace(".", ".AAAA"), "nokey." + sealed.partition(".")[2]):
        with pytest.raises(SecretsUnreadable):
            keys.open(wrong, about="con_1 pin")
    with pytest.raises(SecretsUnreadable):
        keys.open(sealed, about="con_2 pin")


def test_rotating_encrypts_everything_anew_and_forgets_the_old_key(database: Database, keys: ConnectionKeys) -> None:
    connection_secrets.keep(database, keys, "u1", "con_1", {"pin": "12345"})
    before, old = database.rows("SELECT sealed FROM connection_secrets")[0]["sealed"], keys.ids
    elsewhere = ConnectionKeys(keys.path)
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
    assert connection_secrets.unreadable(database, keys) == []
    other = ConnectionKeys(tmp_path / "other.json")
    assert connection_secrets.unreadable(database, other) == [("u1", "con_1")]
    with pytest.raises(KeyMissing):
        connection_secrets.rotate(database, other)
    assert not other.path.exists()
    other.seal("x", about="y")
    assert connection_secrets.rotate(database, other) == 0
    assert connection_secrets.find(database, keys, "u1", "con_1") == {"pin": "12345"}


def test_a_rotation_waits_for_what_is_sealed_and_not_yet_stored(database: Database, keys: ConnectionKeys) -> None:
    keys.seal("x", about="y")
    other = ConnectionKeys(keys.path)
    rotating = threading.Thread(target=connection_secrets.rotate, args=(database, other))
    with keys.held(), database.transaction() as session:
        connection_secrets.keep(session, keys, "u1", "con_1", {"pin": "12345"})
        rotating.start()
        rotating.join(0.2)
    rotating.join(30)
    assert not rotating.is_alive()
    assert connection_secrets.find(database, keys, "u1", "con_1") == {"pin": "12345"}


def test_a_folder_of_keys_that_is_not_there_is_named(tmp_path: Path) -> None:
    keys = ConnectionKeys(tmp_path / "nowhere" / "keys.json")
    with pytest.raises(ConnectionKeysUnusable, match=r"nowhere/keys\.json cannot be used: No such file"), keys.alone():
        pass


@pytest.mark.parametrize(
    "spoil", [lambda text: text[:-9], lambda _: "[]", lambda _: json.dumps({"keys": [{"id": "a", "key": "AA=="}]})]
)
def test_a_damaged_file_of_keys_stops_the_start(keys: ConnectionKeys, spoil: Callable[[str], str]) -> None:
    keys.seal("x", about="y")
    keys.path.write_text(spoil(keys.path.read_text("utf-8")), "utf-8")
    with pytest.raises(ConnectionKeysUnusable, match="damaged"):
        ConnectionKeys(keys.path)


def test_of_two_first_keys_that_are_made_at_once_the_first_one_seals(
    keys: ConnectionKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, faster = os.link, ConnectionKeys(keys.path)

    def link_late(*arguments: Any) -> None:
        monkeypatch.setattr("os.link", link)
        faster.seal("x", about="y")
        link(*arguments)

    monkeypatch.setattr("os.link", link_late)
    assert faster.open(keys.seal("x", about="y"), about="y") == "x"
    assert keys.ids == faster.ids
    assert len(keys.ids) == 1


def test_where_no_key_can_be_kept_nothing_is_sealed(tmp_path: Path) -> None:
    with pytest.raises(ConnectionKeysUnusable, match=r"nowhere/keys\.json cannot be written: No such file"):
        ConnectionKeys(tmp_path / "nowhere" / "keys.json").seal("x", about="y")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConnectionKeysUnusable, match=r"file/keys\.json cannot be used: Not a directory"):
        ConnectionKeys(tmp_path / "file" / "keys.json")
    (tmp_path / "keys.json").mkdir(mode=0o700)
    with pytest.raises(ConnectionKeysUnusable, match=r"keys\.json cannot be used: Is a directory"):
        ConnectionKeys(tmp_path / "keys.json")


def test_a_file_of_keys_that_is_gone_holds_none_and_no_other_begins_where_it_may_not(tmp_path: Path) -> None:
    may = [True, False]
    keys = ConnectionKeys(tmp_path / "keys.json", may_begin=lambda: may.pop(0))
    keys.seal("x", about="y")
    keys.path.unlink()
    assert keys.ids == []
    with pytest.raises(KeyMissing):
        keys.seal("x", about="y")


def test_whether_any_secret_is_kept_is_known(database: Database, keys: ConnectionKeys) -> None:
    assert connection_secrets.is_any_kept(database) is False
    connection_secrets.keep(database, keys, "u1", "con_1", {"pin": "12345"})
    assert connection_secrets.is_any_kept(database) is True
