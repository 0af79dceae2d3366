"""A DuckDB store moved into PostgreSQL: whole, compared, cut off and gone on with, and tokens that live on."""

from contextlib import closing, suppress
from datetime import date
from pathlib import Path

import pytest

from auth.tokens.keys import FILE_NAME as KEYS
from connectors.reference.exchange_rates import FILE_NAME
from handlers.commands import access, imports
from handlers.commands.control_socket import CommandError
from handlers.commands.larger_stores import migrate_store
from handlers.settings import load
from handlers.work.services import open_services
from storage import users
from storage.bank_access import connection_keys
from storage.bank_access.connection_keys import ConnectionKeys
from storage.changes import first_answers
from storage.database import Database, StoreError
from storage.engines import moving
from storage.notices import push_key
from storage.row_owners import OF_ALL, OF_USERS
from tests.cli.conftest import bankdata
from tests.engines import ENGINE, tables_of
from tests.service.conftest import Said

PROFILE = '{"header": ["Day", "Sum"], "columns": {"date": "Day", "amount": "Sum"}, "date": "YYYY"}'


@pytest.mark.requirement("store.tables")
def test_of_every_table_it_is_said_whose_rows_it_has(database: Database) -> None:
    assert sorted([*OF_USERS, *OF_ALL]) == tables_of(database)


@pytest.fixture
def old(tmp_path: Path) -> tuple[Path, str]:
    """The data folder of a DuckDB store with two users and bookings, and a token of one of them."""
    folder = tmp_path / "old"
    said = Said()
    with closing(open_services(load({}, data_dir=folder))) as services:
        services.own_profiles.keep("mine.json", PROFILE, now=services.clock.now())
        for name in ("eva", "Strauß"):
            users.add(
                services.everybody,
                name=name,
                password_hash=None,
                has_subscription=True,
                home_currency="EUR",
                now=services.clock.now(),
            )
            file = tmp_path / f"{name}.csv"
            file.write_text(f"Date,Description,Amount,Currency\n2026-03-02,{name},-3.50,EUR\n2026-03-03,,4.00,EUR\n")
            imports.import_files(
                services,
                Said(),
                user=users.get_by_name(services.everybody, name),
                files=[str(file)],
                connection=None,
                account=None,
                is_dry_run=False,
                is_json=False,
            )
        push_key.find(services.everybody, services.connection_keys, lambda: "private")
        eva = users.get_by_name(services.everybody, "eva")
        access.print_calendar_link(services, said, user=eva)
        access.print_token(services, said, user=eva, scope="read:accounts", seconds=3600)
    return folder, said.lines[-1]


@pytest.mark.engine("postgresql")
@pytest.mark.requirement("migrate-store")
def test_a_move_that_breaks_off_goes_on_and_ends_with_equal_stores_and_living_tokens(
    old: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, token = old
    before = (folder / "bankdata.duckdb").read_bytes()
    settings = ENGINE.settings(tmp_path / "new")
    rows, asked = moving._rows, []

    def breaks_off(*arguments: object) -> object:
        asked.append(arguments[1])
        if asked.count("jobs") == 2:
            raise StoreError("cut off")
        return rows(*arguments)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(moving, "_rows", breaks_off)
    with pytest.raises(CommandError, match="cut off"):
        migrate_store(settings, Said(), folder=folder)
    with pytest.raises(StoreError, match="is not whole"), closing(open_services(settings)):
        pass
    monkeypatch.setattr(moving, "_rows", rows)
    for _ in range(2):
        said = Said()
        with suppress(CommandError):  # the second time: the store is not empty
            migrate_store(settings, said, folder=folder)
            assert said.lines == ["Moved 2 users and compared every row. The old store is as it was."]
    assert (folder / "bankdata.duckdb").read_bytes() == before
    with closing(open_services(settings)) as services:
        assert services.connection_keys.ids == ConnectionKeys(folder / connection_keys.FILE_NAME).ids
        assert services.authorization.access.principal(token).user_id == users.get_by_name(services.everybody, "EVA").id
        assert push_key.find(services.everybody, services.connection_keys, lambda: "another") == "private"
        assert users.get_by_name(services.everybody, "STRAUSS").name == "Strauß"
        assert services.authorization.calendar.revoke(users.get_by_name(services.everybody, "eva").id)
        assert services.everybody.rows("SELECT count(*) AS n FROM transactions") == [{"n": 4}]
        for user in users.everyone(services.everybody):
            begun = first_answers.begin(services.everybody, user.id, with_bookings=True)
            assert begun is not None
            assert begun.row is not None  # nobody has to be read anew with their first question there
        assert [(each.name, each.date) for each in services.own_profiles.read()] == [("mine", ("YYYY",))]


@pytest.mark.engine("postgresql")
@pytest.mark.requirement("migrate-store")
def test_a_wrong_profile_stops_the_move_before_it_begins(old: tuple[Path, str], tmp_path: Path) -> None:
    (old[0] / "csv-profiles" / "wrong.json").write_text("{")
    with pytest.raises(CommandError, match=r"wrong\.json: not valid JSON"):
        migrate_store(ENGINE.settings(tmp_path / "new"), Said(), folder=old[0])


@pytest.mark.engine("postgresql")
@pytest.mark.requirement("migrate-store")
def test_a_row_that_differs_stops_the_move(
    old: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, compare = ENGINE.settings(tmp_path / "new"), moving._compare
    monkeypatch.setattr(moving, "_compare", lambda table, here, there: compare(table, here, there.clear()))
    with pytest.raises(CommandError, match=r"What was moved differs from what was there\. Table users: 1 rows here, 0"):
        migrate_store(settings, Said(), folder=old[0])


@pytest.mark.requirement("migrate-store")
@pytest.mark.long
def test_what_cannot_be_moved_is_refused_in_a_sentence(
    old: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = old
    with pytest.raises(CommandError, match="Set BANKDATA_DATABASE_URL"):
        migrate_store(load({}, data_dir=tmp_path / "new"), Said(), folder=folder)
    elsewhere = load({"BANKDATA_DATABASE_URL": "postgresql://127.0.0.1:1/none"}, data_dir=tmp_path / "new")
    with pytest.raises(CommandError, match="holds no bankdata"):
        migrate_store(elsewhere, Said(), folder=tmp_path)
    with pytest.raises(CommandError, match=r"The database at postgresql://[^ ]*:1/none cannot"):
        migrate_store(elsewhere, Said(), folder=folder)
    (tmp_path / "file").write_text("")
    nowhere = load({"BANKDATA_DATABASE_URL": "postgresql://127.0.0.1:1/none"}, data_dir=tmp_path / "file" / "new")
    with pytest.raises(CommandError, match=r"file/new: Not a directory\."):
        migrate_store(nowhere, Said(), folder=folder)


@pytest.mark.requirement("migrate-store")
@pytest.mark.long
def test_the_command_says_in_one_line_what_it_cannot_move(old: tuple[Path, str], tmp_path: Path) -> None:
    done = bankdata("migrate-store", "--from", old[0], "--data", tmp_path / "new")
    assert done.failed_with("Set BANKDATA_DATABASE_URL")


@pytest.mark.engine("postgresql")
@pytest.mark.requirement("migrate-store")
def test_the_command_moves_a_store(old: tuple[Path, str], tmp_path: Path) -> None:
    settings = {name.removeprefix("BANKDATA_"): value for name, value in ENGINE.environment(tmp_path / "new").items()}
    (old[0] / KEYS).unlink()  # nobody has signed in there yet
    (old[0] / connection_keys.FILE_NAME).unlink()  # and no bank been connected
    (old[0] / FILE_NAME).write_text("Date,USD\n2026-11-20,1.25\n")
    done = bankdata("migrate-store", "--from", old[0], "--data", tmp_path / "new", settings=settings)
    assert (done.code, done.lines) == (0, ["Moved 2 users and compared every row. The old store is as it was."])
    with closing(open_services(ENGINE.settings(tmp_path / "new"))) as services:
        assert services.rates["day"].max() == date(2026, 11, 20)
