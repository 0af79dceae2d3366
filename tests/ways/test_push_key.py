"""The key by which push services know a store: one, whoever asks first, and worth nothing in a copy of the store."""

import threading
from pathlib import Path

import pytest

from connectors.ways.web_push import WebPushKey
from storage.bank_access import connection_secrets
from storage.bank_access.connection_keys import ConnectionKeys, SecretsUnreadable
from storage.database import Database
from storage.notices import push_key

pytestmark = pytest.mark.requirement("ways.push")


def test_all_who_ask_at_once_get_one_key_which_outlives_a_rotation_and_ends_when_it_is_renewed(
    database: Database, tmp_path: Path
) -> None:
    keys, found = ConnectionKeys(tmp_path / "connection-keys.json"), list[str]()
    asking = [
        threading.Thread(target=lambda: found.append(push_key.find(database, keys, WebPushKey.new))) for _ in range(4)
    ]
    for each in asking:
        each.start()
    for each in asking:
        each.join(60)
    assert (len(found), len(set(found))) == (4, 1)
    connection_secrets.rotate(database, keys)
    elsewhere = ConnectionKeys(tmp_path / "connection-keys.json")
    assert push_key.find(database, elsewhere, WebPushKey.new) == found[0]
    assert found[0] not in str(database.rows("SELECT field, sealed FROM connection_secrets"))
    renewed = WebPushKey.new()
    push_key.renew(database, keys, renewed)
    assert push_key.find(database, keys, WebPushKey.new) == renewed


def test_a_copy_of_the_store_without_its_keys_sends_nothing_until_the_key_is_renewed(
    database: Database, tmp_path: Path
) -> None:
    push_key.find(database, ConnectionKeys(tmp_path / "connection-keys.json"), WebPushKey.new)
    copied = ConnectionKeys(tmp_path / "others.json")
    with pytest.raises(SecretsUnreadable):
        push_key.find(database, copied, WebPushKey.new)
    push_key.renew(database, copied, renewed := WebPushKey.new())
    assert push_key.find(database, copied, WebPushKey.new) == renewed
