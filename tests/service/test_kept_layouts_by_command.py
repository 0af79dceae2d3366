"""Layouts of one user by command: a guess is printed as a profile, put right, added for the user, listed, removed."""

import json
from pathlib import Path

import pytest

from handlers.work.own_profiles import KEPT_MAX, TOO_MANY_KEPT
from tests.cli.conftest import Done, bankdata
from tests.conftest import empty_folder
from tests.engines import ENGINE

CARD = "Datum;Wer;Betrag\n02.02.2026;Rewe;3,50\n"

pytestmark = pytest.mark.requirement("layouts.commands")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with an empty store."""
    return empty_folder(tmp_path / "data")


def run(folder: Path, *arguments: object) -> Done:
    given = {name.removeprefix("BANKDATA_"): value for name, value in ENGINE.environment(folder).items()}
    return bankdata(*arguments, "--data", folder, settings=given)


@pytest.mark.long
def test_a_guess_is_put_right_and_kept_for_one_user(folder: Path, tmp_path: Path) -> None:
    for name in ("eva", "tom"):
        run(folder, "users", "add", name, "--random")
    card, profile = tmp_path / "card.csv", tmp_path / "card.json"
    card.write_text(CARD)
    explained = run(folder, "import", "--explain", card)
    assert explained.code == 1
    [guess] = [line.removeprefix("  profile    ") for line in explained.lines if line.startswith("  profile ")]
    profile.write_text(json.dumps({**json.loads(guess), "inverted": True}))
    assert run(folder, "profiles", "add", profile, "--user", "eva").err == "Added.\n"
    assert run(folder, "profiles", "add", profile, "--user", "eva").err == "Replaced.\n"
    assert run(folder, "profiles", "list").lines == []
    [[id_, file]] = [line.split("\t") for line in run(folder, "profiles", "list", "--user", "eva").lines]
    assert (id_.startswith("lay_"), file) == (True, "card.json")
    assert run(folder, "import", card, "--user", "eva").lines[0] == f"{card} (csv): 1 new, 0 known"
    assert run(folder, "import", card, "--user", "tom").code == 1
    said = run(folder, "import", "--explain", card, "--user", "eva")
    assert (said.code, said.lines[1]) == (0, f"  layout     {id_}")
    assert run(folder, "import", "--explain", card, "--user", "tom").code == 1
    assert run(folder, "import", "--explain", card).code == 1
    assert run(folder, "import", "--explain", card, "--user", "nobody").failed_with("There is no user")
    assert "-3.50" in run(folder, "export", "--user", "eva", "--format", "csv").out
    assert run(folder, "profiles", "remove", id_, "--user", "tom").failed_with("There is no profile of this id.")
    assert run(folder, "profiles", "remove", id_, "--user", "eva").err == "Removed.\n"
    assert run(folder, "profiles", "list", "--user", "eva").lines == []


@pytest.mark.long
def test_an_account_is_kept_for_files_that_do_not_say_theirs(folder: Path, tmp_path: Path) -> None:
    run(folder, "users", "add", "eva", "--random")
    first, card, profile = tmp_path / "first.csv", tmp_path / "card.csv", tmp_path / "card.json"
    rows = "DE89370400440532013000;01.03.2026;-1,00;a\nDE89370400440532013000;02.03.2026;-2,00;b\n"
    first.write_text(f"Kontonummer;Buchungstag;Betrag;Verwendungszweck\n{rows}")
    card.write_text(CARD)
    run(folder, "import", first, "--user", "eva")
    guess = next(each for each in run(folder, "import", "--explain", card).lines if each.startswith("  profile "))
    profile.write_text(json.dumps({**json.loads(guess.removeprefix("  profile    ")), "inverted": True}))
    add = ("profiles", "add", profile, "--user", "eva", "--account")
    assert run(folder, *add, "nobody's").failed_with("The user has no account with this id or name.")
    assert run(folder, *add, "DE89370400440532013000").err == "Added.\n"
    assert run(folder, "import", card, "--user", "eva").lines[0] == f"{card} (csv): 1 new, 0 known"
    assert len(run(folder, "accounts", "list", "--user", "eva").lines) == 1
    assert "say whose with --user" in run(folder, "profiles", "add", profile, "--account", "a").err


def test_a_signed_guess_is_printed_as_a_profile_and_a_wrong_one_is_not_added(folder: Path, tmp_path: Path) -> None:
    run(folder, "users", "add", "eva", "--random")
    card, profile = tmp_path / "card.csv", tmp_path / "card.json"
    card.write_text("Date,Payee,Amount\n2026-03-02,Rewe,-3.50\n")
    assert run(folder, "import", "--explain", card).lines[-1] == (
        '  profile    {"header": ["date", "payee", "amount"], "columns": {"date": "date", "name": "payee", '
        '"amount": "amount"}, "date": ["YYYY-MM-DD"], "decimal": "."}'
    )
    profile.write_text("{}")
    assert run(folder, "profiles", "add", profile, "--user", "eva").failed_with("either header")


def test_so_many_are_kept_of_one_user_at_most(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(folder, "users", "add", "eva", "--random")
    monkeypatch.setattr("handlers.work.own_profiles.KEPT_MAX", 1)
    profile = tmp_path / "a.json"
    for header, code in ((["a", "b"], 0), (["a", "c"], 1)):
        profile.write_text(json.dumps({"header": header, "columns": {"date": "a", "amount": 2}, "date": "DD.MM.YYYY"}))
        assert run(folder, "profiles", "add", profile, "--user", "eva").code == code
    assert run(folder, "profiles", "add", profile, "--user", "eva").failed_with(TOO_MANY_KEPT)
    assert KEPT_MAX == 100
