"""What all commands of `bankdata` share, and those that keep a store well; with and without a running server."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import click
import pytest

from handlers.cli import main
from handlers.commands.demo import welcome
from handlers.settings import load
from handlers.work.services import open_services
from storage.backup import BackupFailed, backup
from tests.cli.conftest import Done, Run, bankdata
from tests.conftest import empty_store
from tests.service.conftest import Served
from tests.service.test_live_sources import Paper


def commands(group: click.Group = main, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with its words, groups too."""
    for name, command in group.commands.items():
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


ALL = {" ".join(path): command for path, command in commands()}


LOADED = """
import sys
import handlers.cli
print(*sorted({"connexion", "cryptography", "duckdb", "lxml", "polars"} & set(sys.modules)))
"""


@pytest.mark.requirement("cli.quick")
def test_help_and_commands_of_a_server_load_none_of_what_it_has_loaded_already() -> None:
    loaded = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []


WITHOUT_EXTRAS = """
import importlib, pkgutil, sys
sys.modules.update(dict.fromkeys(("fints", "psycopg", "psycopg_pool", "redis")))  # as where they are not installed
import handlers.cli, handlers.commands
for module in pkgutil.walk_packages(handlers.commands.__path__, "handlers.commands."):
    importlib.import_module(module.name)
"""


@pytest.mark.requirement("cli.help")
def test_every_command_can_be_loaded_without_the_packages_of_the_extras() -> None:
    loaded = subprocess.run([sys.executable, "-c", WITHOUT_EXTRAS], capture_output=True, text=True)
    assert (loaded.returncode, loaded.stderr) == (0, "")


LEAVES = """
from handlers.cli import main
from handlers.commands.demo import welcome
from handlers.work.services import open_services
from handlers.settings import load
class Loaded:
    def __del__(self):
        print("taken apart")
loaded = Loaded()
main([{!r}])
"""


@pytest.mark.requirement("cli.quick")
@pytest.mark.parametrize(("typed", "code"), [("--version", 0), ("unknown", 2)])
def test_a_command_ends_without_taking_apart_what_it_has_loaded(typed: str, code: int) -> None:
    done = subprocess.run([sys.executable, "-c", LEAVES.format(typed)], capture_output=True, text=True)
    assert (done.returncode, "taken apart" in done.stdout) == (code, False)
    assert done.stdout + done.stderr  # what it says is said


@pytest.mark.requirement("cli.quick")
def test_a_command_whose_output_is_closed_ends_without_a_word() -> None:
    code = "from handlers.cli import main; main(['--version'])"
    done = subprocess.run(["sh", "-c", '"$0" -c "$1" >&-', sys.executable, code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.requirement("cli.help")
@pytest.mark.parametrize("path", sorted(ALL))
def test_help_says_what_a_command_does_and_explains_every_option(path: str) -> None:
    done = bankdata(*path.split(), "--help")
    assert (done.code, done.err) == (0, "")
    assert f"Usage: main {path}" in done.out
    command = ALL[path]
    assert command.help
    assert command.help.splitlines()[0].endswith((".", ":"))
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{path} {parameter.name}"
    if not isinstance(command, click.Group):
        assert "--data" in done.out


@pytest.mark.requirement("cli.help")
def test_an_unknown_command_or_option_is_a_usage_error() -> None:
    for wrong in (["nothing"], ["users", "nothing"], ["check", "--nothing"], ["token"], ["clock", "advance", "0"]):
        done = bankdata(*wrong)
        assert done.code == 2
        assert done.out == ""
        assert "Error: " in done.err


@pytest.mark.requirement("cli.one-sentence")
def test_files_that_cannot_be_written_or_read_are_one_sentence(run: Run, tmp_path: Path) -> None:
    nowhere = tmp_path / "none" / "x.csv"
    done = run("export", "--user", "solo", "--format", "csv", "--output", nowhere)
    assert done.failed_with(f"{nowhere}: No such file or directory.")
    (tmp_path / "rules.jsonl").write_bytes(b"\xff\xfe")
    assert run("rules", "add", tmp_path / "rules.jsonl", "--user", "solo").failed_with("not a text in UTF-8.")
    assert run("import", tmp_path, "--user", "solo").failed_with("1 of 1 file refused.")


@pytest.mark.requirement("cli.one-sentence")
def test_arguments_that_are_no_text_are_one_sentence(run: Run, tmp_path: Path) -> None:
    broken = "a\udcff"
    assert run("token", "--user", broken).failed_with("User 'a\\udcff' is not a text in UTF-8.")
    assert run("users", "remove", broken, "--yes").failed_with("Name 'a\\udcff' is not a text in UTF-8.")
    assert run("correct", broken, "RENT", "--user", "solo").failed_with("is not a text in UTF-8.")
    assert run("annotate", "txn_1", "--note", broken, "--user", "solo").failed_with("Note 'a\\udcff' is not a text")
    (tmp_path / broken).mkdir()
    folder = run("connect", "folder", tmp_path / broken, "--user", "solo", "--bank", "Folder")
    assert folder.failed_with("/a\\udcff' is not a text in UTF-8.")


@pytest.mark.requirement("cli.one-sentence")
@pytest.mark.long
def test_a_command_larger_than_a_server_takes_is_one_sentence(served: Served, tmp_path: Path) -> None:
    (tmp_path / "rules.jsonl").write_text("#" * 2**20)
    done = bankdata("rules", "add", tmp_path / "rules.jsonl", "--user", "solo", "--data", served.folder)
    assert done.failed_with("The command is too large")


@pytest.mark.requirement("serve.demo")
def test_a_demo_prints_no_password_that_its_user_has_changed_and_verifies_no_other(
    copied: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, paper, verified = copied(), Paper(), list[str]()
    assert bankdata("users", "passwd", "solo", "--random", "--data", folder).code == 0
    with closing(open_services(load({}, data_dir=folder))) as services:
        passwords = services.authorization.passwords
        verify = passwords.is_right

        def counted(password: str, stored: str | None) -> bool:
            verified.append(password)
            return verify(password, stored)

        monkeypatch.setattr(passwords, "is_right", counted)
        welcome(services, paper)
    assert verified == ["demo-solo-2024"]
    assert [line.split()[1:4:2] for line in paper.lines if line.startswith("  user ")] == [
        ["demo", "demo-demo-2024"],
        ["solo", "changed"],
        ["empty", "demo-empty-2024"],
        ["lapsed", "demo-lapsed-2024"],
        ["globe", "demo-globe-2024"],
    ]


@pytest.mark.requirement("cli.clock")
def test_the_clock_of_a_demo_moves_forward(run: Run) -> None:
    (line,) = run("clock", "advance", 3600).lines
    assert line.startswith("It is now ")
    assert line.endswith(" UTC in the demo.")
    assert run("clock", "advance", -1).code == 2


@pytest.mark.requirement("cli.clock")
def test_the_clock_of_a_real_store_does_not_move(tmp_path: Path) -> None:
    assert bankdata("users", "add", "eva", "--random", "--data", tmp_path).code == 0
    done = bankdata("clock", "advance", 60, "--data", tmp_path)
    assert done.failed_with("Only a store made by `bankdata demo` has a clock that can be moved; this one is real.")


@pytest.mark.requirement("cli.check")
def test_check_says_what_there_is(run: Run, place: Path) -> None:
    done = run("check")
    assert (done.code, done.err) == (0, "")
    assert [line.split()[0] for line in done.lines] == ["settings", "store", "keys", "users", "backup"]
    assert str(place / "bankdata.duckdb") in done.out


@pytest.mark.requirement("backup")
def test_a_backup_is_a_data_folder_of_its_own(run: Run) -> None:
    expected = run("users", "list").lines
    (folder,) = run("backup").lines
    assert bankdata("users", "list", "--data", folder).lines == expected
    exported = bankdata("export", "--user", "solo", "--format", "jsonl", "--data", folder)
    assert exported.lines == run("export", "--user", "solo", "--format", "jsonl").lines


@pytest.mark.requirement("backup")
def test_backups_at_once_are_two_and_a_failed_one_leaves_no_folder(tmp_path: Path) -> None:
    database = empty_store(tmp_path / "bankdata.duckdb")
    try:
        with ThreadPoolExecutor() as threads:
            asked = [threads.submit(backup, database, tmp_path / "backups" / "now") for _ in range(3)]
        made = sorted(each.result().name for each in asked)
        with pytest.raises(BackupFailed, match=r"could not be written to .*/later: No such file or directory."):
            backup(database, tmp_path / "backups" / "later", also=[tmp_path / "missing"])
    finally:
        database.close()
    assert made == ["now", "now-2", "now-3"]
    assert sorted(path.name for path in (tmp_path / "backups").iterdir()) == made


@pytest.mark.requirement("compact")
def test_compact_says_how_many_rows_it_sorted(run: Run) -> None:
    (line,) = run("compact").lines
    assert line.startswith("Sorted ")
    assert line.endswith(" transactions.")


@pytest.mark.requirement("cli.one-sentence")
def test_every_command_that_names_a_user_refuses_one_nobody_knows(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    file.write_text("x")
    refused: list[Done] = [
        run("users", "passwd", "nobody", "--random"),
        run("users", "subscription", "nobody", "on"),
        run("connect", "demo", "--user", "nobody"),
        run("connect", "folder", tmp_path, "--user", "nobody"),
        run("import", file, "--user", "nobody"),
        run("export", "--user", "nobody", "--format", "csv"),
        run("rules", "list", "--user", "nobody"),
        run("rules", "apply", "--user", "nobody"),
        run("correct", "txn_0", "RENT", "--user", "nobody"),
        run("connections", "list", "--user", "nobody"),
    ]
    for done in refused:
        assert done.failed_with("There is no user named 'nobody'. `bankdata users list` shows who there is.")
