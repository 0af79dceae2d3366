"""What a command cannot do, said in one sentence: a store of one user, and no server."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from auth.apps.clients import Clients
from connectors.connector import Misconfigured
from handlers.cli.serving import _forget_demo
from handlers.commands.control_socket import FILE_NAME, CommandError, Interrupted
from handlers.commands.imports import import_files
from handlers.commands.larger_stores import say
from handlers.commands.rehearsals import restore_drill
from handlers.commands.table import COMMANDS, perform
from handlers.settings import load
from handlers.work.services import Services, open_services
from handlers.work.sources import content_of
from storage import backup, connections, users
from storage.database import Conflict, StoreError, StoreFull
from storage.engines.distribution import Distributed
from storage.engines.opening import open_database
from tests.analytics.rate_server import ecb_zip, rate_server, response
from tests.cli.conftest import bankdata
from tests.conftest import empty_folder
from tests.service.conftest import BANKDATA, Said, environment, free_port

COFFEE = "Date,Description,Amount,Currency\n2026-03-01,Coffee,-3.50,EUR\n"
A_DAY = date(2026, 7, 27)
HOLDS_THE_STORE = """
import sys
import duckdb
store = duckdb.connect(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with the user eva."""
    made = empty_folder(tmp_path / "data")
    assert bankdata("users", "add", "eva", "--random", "--data", made).code == 0
    return made


@pytest.fixture
def services(folder: Path) -> Iterator[Services]:
    """The same, opened."""
    with closing(open_services(load({}, data_dir=folder))) as opened:
        yield opened


def refusal(services: Services, command: str, **arguments: Any) -> str:
    """Why a command is refused."""
    with pytest.raises(CommandError) as caught:
        perform(services, command, arguments, Said())
    return str(caught.value)


@pytest.mark.requirement("cli.one-sentence")
def test_commands_that_name_what_is_not_there_are_refused(services: Services, tmp_path: Path) -> None:
    year = 366 * 86_400
    strangers = tmp_path / "strangers"
    strangers.mkdir()
    (strangers / "letter.txt").write_text("Dear Eva")
    missing, of_eva = tmp_path / "missing", {"user": "eva"}
    for command, arguments, sentence in (
        ("token", {**of_eva, "scope": "read:accounts", "seconds": year}, "The lifetime must lie between 1 second and"),
        ("connect folder", {**of_eva, "folder": str(missing), "bank": None}, f"{missing}"),
        ("connect folder", {**of_eva, "folder": str(strangers), "bank": "a\nb"}, "The name of a bank has at most "),
        ("connect folder", {**of_eva, "folder": str(strangers), "bank": None}, f"{strangers} holds files that are not"),
        ("rates update", {"file": str(missing)}, f"{missing}: No such file or directory."),
    ):
        assert sentence in refusal(services, command, **arguments)


@pytest.mark.requirement("cli.one-sentence")
def test_a_change_that_another_one_keeps_out_may_be_tried_again(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept_out(*_: object, **__: object) -> None:
        raise Conflict

    monkeypatch.setitem(COMMANDS, "users list", kept_out)
    assert refusal(services, "users list") == "Something else changed the same data at the same time. Try again."


@pytest.mark.requirement("cli.one-sentence")
def test_a_store_that_another_program_has_open_is_named(folder: Path) -> None:
    store = folder / "bankdata.duckdb"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS_THE_STORE, store], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        done = bankdata("users", "list", "--data", folder)
        other.communicate()
    assert done.failed_with(f"Another process has {store} open and does not listen for commands. Stop it first.")


@pytest.mark.requirement("cli.one-sentence")
def test_a_folder_whose_name_is_too_long_is_named(tmp_path: Path) -> None:
    assert bankdata("users", "list", "--data", tmp_path / ("x" * 300)).failed_with(
        "cannot be used: File name too long."
    )


@pytest.mark.requirement("store.unreadable")
def test_a_store_of_a_newer_program_is_refused_and_stays_as_it_is(folder: Path, services: Services) -> None:
    services.everybody.execute("UPDATE schema_version SET number = 999 WHERE number = 1")
    services.close()
    for _ in range(2):
        assert bankdata("users", "list", "--data", folder).failed_with("The store has schema version 999")


@pytest.mark.requirement("cli.one-sentence")
def test_a_sync_that_the_stop_of_the_server_holds_up_goes_on_after_its_next_start(services: Services) -> None:
    eva = {"user": "eva", "connector": "demo", "settings": {"accounts": "1"}, "bank": "Musterbank", "fault": None}
    services.sync_engine.stop()
    assert refusal(services, "connect", **eva) == "Musterbank: the sync goes on after the server's next start."


@pytest.mark.requirement("words.own")
def test_there_are_500_own_categories_and_not_one_more(services: Services) -> None:
    user_id = users.get_by_name(services.everybody, "eva").id
    for number in range(499):
        services.everybody.execute(
            "INSERT INTO own_categories (user_id, id, name, category) VALUES ($1, $2, $2, 'RENT')",
            user_id,
            f"own_{number}",
        )
    wanted = {"user": "eva", "below": "RENT"}
    perform(services, "categories add", {**wanted, "name": "the last"}, Said())
    assert refusal(services, "categories add", **wanted, name="more") == "There may be 500 categories of one's own."


@pytest.mark.requirement("words.targets")
def test_the_target_of_a_command_is_no_negative_amount_and_none_that_requests_could_not_tell(
    services: Services,
) -> None:
    wanted = {"user": "eva", "place": "RENT", "period": "month", "month": None}
    assert refusal(services, "targets set", **wanted, amount="-1") == "An amount is 0 or more, such as 400 or 12.50."
    assert refusal(services, "targets set", **wanted, amount="1000000000000") == "amount: at most 999999999999"
    for amount in ("0", "999999999999"):
        perform(services, "targets set", {**wanted, "amount": amount}, Said())


class Leaving(Said):
    """A person who presses Ctrl-C as soon as something takes its time."""

    def progress(self, *_: object, **__: object) -> None:
        raise Interrupted(Interrupted.__doc__)


@pytest.mark.requirement("decision 69")
def test_whoever_leaves_a_sync_is_told_that_it_goes_on_and_how_it_is_called(services: Services, tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    folder = {"user": "eva", "folder": str(files), "bank": "My files"}
    with pytest.raises(Interrupted, match=r"^The sync of My files goes on in the server as syn_\w+\.$") as caught:
        perform(services, "connect folder", folder, Leaving())
    (job,) = services.everybody.rows("SELECT id FROM jobs")
    assert job["id"] in str(caught.value)


@pytest.mark.requirement("cli.one-sentence")
def test_a_sync_that_needs_its_user_first_says_so_and_a_booking_without_counterpart_cannot_be_corrected(
    services: Services, tmp_path: Path
) -> None:
    file = tmp_path / "bare.csv"
    file.write_text(f"Date,Description,Amount,Currency\n{date(2026, 3, 2)},,-3.50,EUR\n")
    import_files(services, Said(), user=users.get_by_name(services.everybody, "eva"), files=[str(file)])
    (booking,) = services.everybody.rows("SELECT id FROM transactions")
    wanted = {"user": "eva", "transaction_id": booking["id"], "place": "RENT", "is_one": False}
    assert refusal(services, "correct", **wanted).startswith("This booking names no counterpart to remember.")
    (connection,) = services.everybody.rows("SELECT id, user_id FROM connections")
    connections.record_failure(services.everybody, connection["user_id"], connection["id"], status="REAUTH_REQUIRED")
    assert refusal(services, "sync", user="eva") == "1 sync failed."


@pytest.mark.requirement("cli.check")
def test_check_names_every_fault_with_what_helps(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.chmod(0o750)
    monkeypatch.setattr(backup, "FREE_BYTES_MIN", 2**62)
    provider = {"OIDC_ISSUER": "https://id.example.org", "OIDC_CLIENT_ID": "bankdata", "OIDC_NEW_PEOPLE": "on"}
    done = bankdata("check", "--data", folder, settings={"PUBLIC_URL": "http://192.0.2.1:8000", **provider})
    wrong = [line.removeprefix("WRONG      ") for line in done.lines if line.startswith("WRONG")]
    assert done.failed_with("4 problems found.")
    assert wrong[0] == f"The data folder is open to others (mode 750): chmod 700 {folder}"
    assert wrong[1].endswith(" MB are free on the disk of the store; keep 500 MB.")
    assert wrong[2].endswith("can come in: say which groups may, BANKDATA_OIDC_GROUPS.")
    assert "passwords and tokens travel in clear" in wrong[3]


@pytest.mark.requirement("cli.one-sentence")
def test_where_there_are_no_users_the_list_says_how_to_add_one(folder: Path) -> None:
    assert bankdata("users", "remove", "eva", "--yes", "--data", folder).code == 0
    done = bankdata("users", "list", "--data", folder)
    assert (done.lines, done.err) == ([], "There are no users yet. Add one with `bankdata users add NAME`.\n")


@pytest.mark.requirement("cli.one-sentence")
def test_a_grant_is_revoked_by_its_id(folder: Path) -> None:
    assert bankdata("token", "--user", "eva", "--data", folder).code == 0
    (grant,) = bankdata("grants", "list", "--data", folder).lines
    assert bankdata("grants", "revoke", grant.split("\t")[0], "--data", folder).err == "Revoked.\n"
    assert bankdata("grants", "list", "--data", folder).lines == []


@pytest.mark.requirement("cli.one-sentence")
def test_an_import_waits_neither_for_a_sync_of_its_connection_nor_for_a_server_that_stops(
    services: Services, tmp_path: Path
) -> None:
    file = tmp_path / "coffee.csv"
    file.write_text(COFFEE)
    eva = users.get_by_name(services.everybody, "eva")
    import_files(services, Said(), user=eva, files=[str(file)])
    (connection,) = connections.of_user(services.everybody, eva.id)
    assert services.sync_engine.start(connection, cooldown=timedelta(0)).job is not None
    with pytest.raises(CommandError, match=r"^Statement files is being synced\. Try again in a moment\.$"):
        import_files(services, Said(), user=eva, files=[str(file)])
    services.sync_engine.stop()
    with pytest.raises(
        CommandError, match=r"^The server is being stopped\. Import the file again after its next start"
    ):
        import_files(services, Said(), user=eva, files=[str(file)])


@pytest.mark.requirement("cli.connect")
def test_a_sync_by_command_counts_the_files_that_were_refused(folder: Path, tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    assert bankdata("connect", "folder", inbox, "--user", "eva", "--data", folder).code == 0
    for name, content in (("broken.xml", "<Document><BkToCstmrStmt>"), ("good.csv", COFFEE)):
        (inbox / name).write_text(content)
        os.utime(inbox / name, (0, 0))  # a folder leaves alone what may still be written
    done = bankdata("sync", "--user", "eva", "--data", folder, settings={"SYNC_COOLDOWN_SECONDS": "0"})
    assert done.lines[-1] == "eva\tinbox\t1 new transaction"
    assert done.failed_with("1 file refused.")


@pytest.mark.requirement("cli.one-sentence")
@pytest.mark.parametrize("options", [(), ("--explain",)])
def test_a_wrong_layout_of_ones_own_is_named_before_a_file_is_read(
    folder: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    (folder / "csv-profiles").mkdir()
    (folder / "csv-profiles" / "mine.json").write_text("{")
    file = tmp_path / "coffee.csv"
    file.write_text(COFFEE)
    assert bankdata("import", *options, "--user", "eva", file, "--data", folder).failed_with("mine.json")


@pytest.mark.requirement("rates.download")
def test_rates_have_no_place_where_the_data_folder_is_gone_and_the_store_is_elsewhere(
    folder: Path, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    with rate_server() as server:
        address = server.page("/rates.zip", response(ecb_zip(A_DAY)))
        wanted = {"RATES_URL": address, "DATABASE_URL": f"duckdb:///{folder / 'bankdata.duckdb'}"}
        done = bankdata("rates", "update", "--data", gone, settings=wanted)
    assert done.failed_with(f"The data folder {gone} cannot be used: No such file or directory.")


@pytest.mark.requirement("cli.one-sentence")
def test_a_demo_deletes_no_database_and_needs_nothing_to_delete(tmp_path: Path) -> None:
    address = {"DATABASE_URL": "postgresql://db/bank", "KEYS_SECRET": "k" * 32}
    refused = bankdata("demo", "--fresh", "--data", tmp_path / "data", settings=address)
    assert refused.failed_with("--fresh deletes files only. Make a new database for the demo, and drop the old one.")
    _forget_demo(load({}, data_dir=tmp_path / "data"))
    assert not (tmp_path / "data").exists()


@pytest.mark.requirement("cli.one-sentence")
def test_a_password_of_ones_own_is_not_printed_and_no_second_factor_is_none_to_turn_off(folder: Path) -> None:
    changed = bankdata("users", "passwd", "eva", "--password-stdin", "--data", folder, stdin="Regenturm-4711-quer\n")
    assert (changed.code, changed.out) == (0, "")
    refused = bankdata("users", "second-factor", "off", "eva", "--data", folder)
    assert refused.failed_with("eva has no second factor.")


@pytest.mark.requirement("distribute.refused")
def test_a_file_cannot_be_spread_over_machines(folder: Path) -> None:
    refused = bankdata("distribute", "--data", folder)
    assert refused.failed_with("Set BANKDATA_DATABASE_URL to the PostgreSQL database that is to be spread.")


@pytest.mark.requirement("distribute")
@pytest.mark.parametrize(
    ("spread", "local", "said"),
    [
        (
            ("users", "accounts"),
            ("documents",),
            [
                "Spread by user: users, accounts.",
                "On the coordinator: documents.",
                "Users are spread in 32 shards over 2 machines.",
            ],
        ),
        ((), (), ["Nothing was left to do: users are spread in 32 shards over 2 machines."]),
    ],
)
def test_what_was_spread_is_said(spread: tuple[str, ...], local: tuple[str, ...], said: list[str]) -> None:
    report = Said()
    say(Distributed(spread=spread, local=local, machines=2, shards=32), report)
    assert report.lines == said


@pytest.mark.requirement("cli.one-sentence")
def test_a_database_whose_library_is_not_installed_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for module in ("postgresql", "restored_cluster"):
        monkeypatch.setitem(sys.modules, f"storage.engines.{module}", None)
    said = r"PostgreSQL needs the extra `postgres`: pip install '.*\[postgres\]'\."
    with pytest.raises(StoreError, match=said):
        open_database("postgresql://db/bank")
    settings = load({"BANKDATA_DATABASE_URL": "postgresql://db/bank"}, data_dir=tmp_path)
    with pytest.raises(CommandError, match=said):
        restore_drill(settings, Said(), backups=tmp_path, at=None)


@pytest.mark.requirement("cli.one-sentence")
def test_a_file_that_a_setting_names_has_to_be_there_and_to_say_something(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(" open sesame\n")
    assert content_of("BANKDATA_X", tmp_path / "secret") == "open sesame"
    with pytest.raises(Misconfigured, match=r"The file that BANKDATA_X names cannot be read\."):
        content_of("BANKDATA_X", tmp_path / "none")
    (tmp_path / "secret").write_text(" \n")
    with pytest.raises(Misconfigured, match=r"BANKDATA_X has to name a file\."):
        content_of("BANKDATA_X", tmp_path / "secret")


@pytest.mark.requirement("store.full-disk")
def test_a_server_over_a_full_disk_does_not_start_and_says_why(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_clients: Clients) -> str:
        raise StoreFull(StoreFull.__doc__)

    monkeypatch.setattr(Clients, "ensure_page", full)
    done = bankdata("serve", "--port", free_port(), "--data", folder)
    assert done.failed_with("The disk of the store is full; nothing of this change was stored.")
    assert not (folder / FILE_NAME).exists()


@pytest.mark.requirement("store.full-disk")
def test_a_command_says_once_that_the_disk_is_full(folder: Path) -> None:
    command = [BANKDATA, "users", "add", "tom", "--random", "--data", folder]
    limited = ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *map(str, command)]
    done = subprocess.run(limited, env=environment(), capture_output=True, text=True)
    assert done.stderr == "Error: The disk of the store is full; nothing of this change was stored.\n"


@pytest.mark.requirement("decision 70")
@pytest.mark.parametrize("command", [["users", "list"], ["check"]])
def test_an_empty_file_is_no_store(folder: Path, command: list[str]) -> None:
    (folder / "bankdata.duckdb").write_bytes(b"")
    assert bankdata(*command, "--data", folder).failed_with(f"There is no store at {folder / 'bankdata.duckdb'}. ")


@pytest.mark.requirement("household.commands")
def test_a_share_whose_last_day_has_passed_is_not_offered(services: Services) -> None:
    services.clock.offset += datetime(2026, 7, 27, 12, tzinfo=UTC) - services.clock.now_in_utc()
    offer = {"user": "eva", "account": (), "name": "mia"}
    assert refusal(services, "shares add", **offer, until="2026-07-26") == (
        "--until: 2026-07-26 has passed, so nobody could accept it."
    )
    said = Said()
    perform(services, "shares list", {"user": "eva"}, said)
    assert said.lines == []
    perform(services, "shares add", {**offer, "until": "2026-07-27"}, Said())


@pytest.mark.requirement("cli.one-sentence")
def test_an_amount_below_zero_is_refused_as_an_amount_and_not_as_an_option(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(COFFEE)
    of_eva = ("--user", "eva", "--data", folder)
    assert bankdata("import", tmp_path / "a.csv", *of_eva).code == 0
    (account,) = (line.split("\t")[0] for line in bankdata("accounts", "list", *of_eva).lines)
    assert bankdata("accounts", "credit-line", account, "-5", *of_eva).failed_with(
        "A credit line is 0 or more, such as"
    )
    assert bankdata("targets", "set", "GROCERIES", "-5", *of_eva).failed_with("An amount is 0 or more, such as 400 or")
    due = ("--every", "month", "--next", "2026-08-01", "--account", account)
    assert bankdata("subscriptions", "add", "Rent", "-5", *due, *of_eva).failed_with("An amount is above 0")
    assert bankdata("alerts", "balance", account, "-5", *of_eva).code == 0
    assert "No such option '--fom'" in bankdata("targets", "set", "GROCERIES", "5", "--fom", "2026-08", *of_eva).err
