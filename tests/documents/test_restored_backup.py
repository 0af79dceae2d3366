"""What docs/operations.md promises of a backup: both files put back, everything is as it was."""

import shutil
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from handlers.commands.table import perform
from handlers.settings import load
from handlers.work.services import open_services
from storage import users
from tests.service.conftest import Said


@pytest.mark.requirement("docs.backup")
def test_a_backup_put_back_knows_its_users_and_their_tokens(tmp_path: Path) -> None:
    settings = load({}, data_dir=tmp_path / "data")
    said = Said()
    user = {"password": "umbrella kettle violin", "is_generated": False, "has_subscription": True}
    with closing(open_services(settings)) as services:
        perform(services, "users add", {"name": "eva", **user}, said)
        eva = users.get_by_name(services.everybody, "eva").id
        token = services.authorization.issue_token(eva, frozenset({"read:accounts"}), timedelta(hours=1))
        perform(services, "backup", {}, said)
        perform(services, "users add", {"name": "after", **user}, said)
    for path in tmp_path.joinpath("data").glob("*"):
        if path.is_file():
            path.write_bytes(b"lost")

    backup = Path(said.lines[-1])
    broken = tmp_path / "data" / "broken"
    broken.mkdir()
    for path in [*settings.data_dir.glob("bankdata.duckdb*"), settings.data_dir / "oauth-keys.json"]:
        path.rename(broken / path.name)
    for path in backup.iterdir():
        shutil.copy2(path, settings.data_dir)

    with closing(open_services(settings)) as services:
        assert [each.name for each in users.everyone(services.everybody)] == ["eva"]
        assert services.authorization.access.principal(token).user_id == eva


@pytest.mark.requirement("docs.backup")
def test_a_backup_holds_the_store_and_the_keys_and_nobody_else_can_read_it(tmp_path: Path) -> None:
    said = Said()
    with closing(open_services(load({}, data_dir=tmp_path / "data"))) as services:
        perform(services, "backup", {}, said)
    backup = Path(said.lines[-1])
    assert {path.name: path.stat().st_mode & 0o777 for path in backup.iterdir()} == {
        "bankdata.duckdb": 0o600,
        "bankdata.duckdb.wal": 0o600,
        "oauth-keys.json": 0o600,
    }
    assert backup.stat().st_mode & 0o777 == 0o700
