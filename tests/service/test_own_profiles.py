"""Own profiles for CSV files by command: on DuckDB files of the data folder, on PostgreSQL documents that all machines
read."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.bank_csv.profile import PROFILES_MAX, ProfileError
from handlers.commands import imports, profiles, upkeep
from handlers.commands.control_socket import CommandError
from handlers.work.own_profiles import PROFILES_FOLDER, OwnProfiles, SharedProfiles
from handlers.work.services import open_services
from storage import users
from tests.cli.conftest import Done, bankdata
from tests.conftest import NOW, empty_folder
from tests.engines import ENGINE, OpenStore
from tests.service.conftest import Said

PROFILE = {
    "bank": "Beispielbank",
    "header": ["Eins", "Zwei", "Vier"],
    "columns": {"date": "Eins", "amount": "Zwei", "indicator": "Vier"},
    "date": "DD.MM.YYYY",
    "decimal": ",",
    "currency": "EUR",
    "debit_words": "raus",
}
CSV = "Eins;Zwei;Drei;Vier\n03.02.2026;4,20;9,10;raus\n04.02.2026;1,10;7,20;raus\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with an empty store."""
    return empty_folder(tmp_path / "data")


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """A file with a profile."""
    file = tmp_path / "beispiel.json"
    file.write_text(json.dumps(PROFILE))
    return file


def run(folder: Path, *arguments: object) -> Done:
    given = {name.removeprefix("BANKDATA_"): value for name, value in ENGINE.environment(folder).items()}
    return bankdata(*arguments, "--data", folder, settings=given)


@pytest.mark.requirement("profiles.commands")
def test_a_profile_is_added_replaced_listed_and_removed(folder: Path, profile: Path) -> None:
    assert run(folder, "profiles", "add", profile).err == "Added.\n"
    assert run(folder, "profiles", "list").lines == ["beispiel\tBeispielbank"]
    profile.write_text(json.dumps({**PROFILE, "bank": "Hausbank"}))
    assert run(folder, "profiles", "add", profile).err == "Replaced.\n"
    profile.rename(profile.with_name("another.json")).write_text(json.dumps({**PROFILE, "bank": None}))
    run(folder, "profiles", "add", profile.with_name("another.json"))
    assert run(folder, "profiles", "list").lines == ["another\t", "beispiel\tHausbank"]
    assert run(folder, "profiles", "remove", "another").err == "Removed.\n"
    assert run(folder, "profiles", "list").lines == ["beispiel\tHausbank"]
    assert run(folder, "profiles", "remove", "another").failed_with("There is no profile of this name.")


@pytest.mark.requirement("profiles.commands")
def test_what_is_no_profile_is_not_kept(folder: Path, profile: Path) -> None:
    run(folder, "profiles", "add", profile)
    profile.write_text("{")
    assert run(folder, "profiles", "add", profile).failed_with("beispiel.json: not valid JSON")
    refusals = {
        "beispiel.txt": "is no name of a profile: it has to end in .json",
        "a\tb.json": "is no name of a profile: it has to end in .json",
        b"b\xff.json".decode(errors="surrogateescape"): "is not a text in UTF-8.",
    }
    for name, refusal in refusals.items():
        file = profile.parent / name
        file.write_text(json.dumps(PROFILE))
        assert run(folder, "profiles", "add", file).failed_with(refusal), refusal
    assert run(folder, "profiles", "list").lines == ["beispiel\tBeispielbank"]


@pytest.mark.requirement("profiles.commands")
def test_there_are_so_many_profiles_at_most(
    database: OpenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert PROFILES_MAX == 1000
    monkeypatch.setattr("handlers.work.own_profiles.PROFILES_MAX", 2)
    own = (OwnProfiles if ENGINE.name == "duckdb" else SharedProfiles)(tmp_path, database)
    for name in ("a.json", "b.json", "b.json"):
        own.keep(name, json.dumps(PROFILE), now=NOW)
    with pytest.raises(ProfileError, match=r"^more than 2 profiles$"):
        own.keep("c.json", json.dumps(PROFILE), now=NOW)
    assert own.names() == {"a.json", "b.json"}


@pytest.mark.requirement("profiles.commands")
@pytest.mark.long
def test_a_file_is_read_by_a_profile_from_its_addition_to_its_removal(
    folder: Path, profile: Path, tmp_path: Path
) -> None:
    file = tmp_path / "february.csv"
    file.write_text(CSV)
    run(folder, "users", "add", "eva", "--random")
    assert run(folder, "import", file, "--user", "eva").code == 1
    assert run(folder, "import", "--explain", file).code == 1
    run(folder, "profiles", "add", profile)
    assert "Beispielbank" in run(folder, "import", "--explain", file).out
    assert run(folder, "import", file, "--user", "eva", "--dry-run").lines[0].endswith("2 new, 0 known")
    run(folder, "profiles", "remove", "beispiel")
    assert run(folder, "import", file, "--user", "eva").code == 1


@pytest.mark.requirement("profiles.commands")
def test_a_wrong_profile_is_named_before_a_file_is_read(folder: Path, profile: Path, tmp_path: Path) -> None:
    with closing(open_services(ENGINE.settings(folder))) as services:
        services.own_profiles.keep(profile.name, profile.read_text(), now=NOW)
        if ENGINE.name == "duckdb":
            (folder / PROFILES_FOLDER / profile.name).write_text("{")
        else:
            services.everybody.execute("UPDATE documents SET content = '{' WHERE name LIKE 'csv%'")
    for command in (("profiles", "list"), ("import", "--explain", profile)):
        assert run(folder, *command).failed_with("beispiel.json: not valid JSON")


@pytest.mark.engine("postgresql")
@pytest.mark.requirement("profiles.shared")
def test_a_profile_that_one_machine_adds_is_used_by_all(profile: Path, tmp_path: Path) -> None:
    one = ENGINE.settings(tmp_path / "one")
    two = replace(one, data_dir=tmp_path / "two")
    file = tmp_path / "february.csv"
    file.write_text(CSV)
    with closing(open_services(one)) as here, closing(open_services(two)) as there:
        users.add(here.everybody, name="eva", password_hash=None, has_subscription=True, home_currency="EUR", now=NOW)
        profiles.add_profile(here, Said(), file=str(profile))
        said = Said()
        imports.import_files(
            there,
            said,
            user=users.get_by_name(there.everybody, "eva"),
            files=[str(file)],
            connection=None,
            account=None,
            is_dry_run=False,
            is_json=False,
        )
        assert said.lines[0] == f"{file} (csv): 2 new, 0 known"
        explained = run(one.data_dir, "import", "--explain", file)
        assert "beispiel (Beispielbank)" in explained.out
        profiles.remove_profile(here, Said(), name="beispiel")
        assert there.own_profiles.read() == ()
    assert not (tmp_path / "one" / PROFILES_FOLDER).exists()


@pytest.mark.engine("postgresql")
@pytest.mark.requirement("profiles.shared")
def test_a_profile_that_lies_where_nothing_reads_it_is_told(profile: Path, tmp_path: Path) -> None:
    with closing(open_services(ENGINE.settings(tmp_path / "data"))) as services:
        services.settings.data_dir.chmod(0o700)
        upkeep.check(services, Said())
        services.own_profiles.folder.mkdir()
        profile.rename(services.own_profiles.folder / "mine.json")
        said = Said()
        with pytest.raises(CommandError, match="1 problem found"):
            upkeep.check(services, said)
    expected = (
        f"WRONG      {tmp_path}/data/csv-profiles is not read: `bankdata profiles add FILE` keeps it in the store."
    )
    assert said.lines[-1] == expected
