"""Commands about who may get in: users, passwords, tokens, apps, keys; with and without a running server."""

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import NUMBERS, NewUser, Run, bankdata

PASSWORD = "Regenturm-4711-quer"


@pytest.mark.requirement("cli.users")
@pytest.mark.sampled
def test_a_user_is_added_listed_changed_and_removed(run: Run) -> None:
    name = f"person{next(NUMBERS)}"
    added = run("users", "add", name, "--password-stdin", stdin=f"{PASSWORD}\n")
    assert (added.code, added.out) == (0, "")
    assert PASSWORD not in added.err
    assert f"{name}\tactive subscription\t0 bank connections" in run("users", "list").lines
    assert run("users", "add", name.upper(), "--random").failed_with(f"There is already a user named {name!r}.")
    assert run("users", "currency", name, "CHF").code == 0
    assert run("users", "currency", name, "XYZ").failed_with("'XYZ' has no reference rate")
    assert run("users", "subscription", name, "off").code == 0
    assert f"{name}\tno subscription\t0 bank connections" in run("users", "list").lines
    changed = run("users", "passwd", name, "--random")
    assert changed.code == 0
    assert len(changed.lines) == 1
    assert len(changed.lines[0]) >= 20
    assert run("users", "remove", name, stdin="n\n").code == 1
    unasked = run("users", "remove", name, stdin="")
    assert (unasked.code, unasked.err.splitlines()[-1]) == (
        1,
        "Error: There is nobody to ask. Use --yes to go ahead without a question.",
    )
    assert any(line.startswith(f"{name}\t") for line in run("users", "list").lines)
    assert run("users", "remove", name, "--yes").code == 0
    assert not any(line.startswith(f"{name}\t") for line in run("users", "list").lines)
    assert run("users", "remove", name, "--yes").failed_with("There is no user named")


@pytest.mark.requirement("cli.users")
@pytest.mark.parametrize(
    ("password", "reason"),
    [("", "too short"), ("short", "too short"), ("password1234", "common"), ("x" * 2000, "too long")],
)
def test_weak_passwords_are_refused_with_the_reason(run: Run, password: str, reason: str) -> None:
    name = f"person{next(NUMBERS)}"
    assert run("users", "add", name, "--password-stdin", stdin=f"{password}\n").failed_with(reason)
    assert not any(line.startswith(f"{name}\t") for line in run("users", "list").lines)


@pytest.mark.requirement("decision 67")
@pytest.mark.parametrize(
    "name",
    ["", " eva", "eva ", "Bad Name!", "e\tva", "e\nva", "_eva", ".eva", "eva/tom", "$eva", "\u0301eva", "x" * 65],
)
def test_names_that_a_shell_an_address_or_a_list_would_take_apart_are_refused(run: Run, name: str) -> None:
    refused = run("users", "add", "--random", name)
    assert refused.failed_with("A user's name has 1 to 64 letters, digits and . _ - + @, and begins with a letter")


@pytest.mark.requirement("decision 67")
@pytest.mark.parametrize("name", ["x" * 64, "7", "Ève", "Ольга", "हिन्दी", "eva.berg+bank@example.org"])
def test_names_of_every_script_and_email_addresses_are_good(run: Run, name: str) -> None:
    assert run("users", "add", name, "--random").code == 0
    assert run("users", "remove", name, "--yes").code == 0


@pytest.mark.requirement("decision 67")
def test_names_that_differ_by_case_or_spelling_of_a_letter_are_one_name(run: Run) -> None:
    """Ids of connections are made of the folded name: a second Strauss could never have imported."""
    assert run("users", "add", "Strauß", "--random").code == 0
    for name in ("Strauss", "STRAUSS", "strauß"):
        assert run("users", "add", name, "--random").failed_with("There is already a user named 'Strauß'.")
        assert run("users", "currency", name, "CHF").code == 0
    assert run("users", "remove", "strauss", "--yes").code == 0


@pytest.mark.requirement("cli.users")
def test_a_new_user_is_told_the_next_step_of_this_store(run: Run, tmp_path: Path) -> None:
    name = f"person{next(NUMBERS)}"
    assert f"`bankdata connect demo --user {name}`" in run("users", "add", name, "--random").err
    real = bankdata("users", "add", name, "--random", "--data", tmp_path)
    assert f"`bankdata import FILE --user {name}`" in real.err


@pytest.mark.requirement("cli.users")
def test_a_password_is_asked_for_twice_and_never_shown(run: Run) -> None:
    name = f"person{next(NUMBERS)}"
    done = run("users", "add", name, stdin=f"{PASSWORD}\n{PASSWORD}\n")
    assert done.code == 0
    assert PASSWORD not in done.out + done.err
    both = run("users", "add", name, "--random", "--password-stdin")
    assert both.code == 2


@pytest.mark.requirement("cli.token")
def test_a_token_stands_alone_on_standard_output(run: Run) -> None:
    done = run("token", "--user", "solo", "--scope", "read:accounts", "--ttl", "90s")
    assert (done.code, done.err) == (0, "")
    assert len(done.lines) == 1
    assert done.lines[0].count(".") == 2
    assert run("token", "--user", "solo", "--scope", "read:everything").failed_with("--scope accepts one or more of")
    assert run("token", "--user", "solo", "--scope", "").failed_with("--scope accepts one or more of")
    assert run("token", "--user", "nobody").failed_with("There is no user named 'nobody'")
    for ttl in ("0s", "1w", "-1h", "h", "1.5h"):
        assert run("token", "--user", "solo", "--ttl", ttl).code == 2


@pytest.mark.requirement("cli.clients")
def test_clients_are_added_listed_and_removed(run: Run) -> None:
    (id_,) = run("clients", "add", "An app", "https://app.example.org/back").lines
    assert any(line.startswith(f"{id_}\tAn app\t") for line in run("clients", "list").lines)
    assert run("clients", "remove", id_).code == 0
    assert run("clients", "remove", id_).failed_with("There is no client with this id.")
    assert run("clients", "add", "An app", "javascript:alert(1)").code == 1


@pytest.mark.requirement("cli.grants")
def test_grants_are_listed_and_unknown_ones_named(run: Run) -> None:
    assert run("grants", "list").code == 0
    assert run("grants", "list", "--user", "nobody").failed_with("There is no user named")
    assert run("grants", "revoke", "g_none").failed_with("There is no active grant with this id.")


@pytest.mark.requirement("cli.keys")
def test_keys_rotate_and_older_tokens_go_on(run: Run) -> None:
    before = run("check").out
    (kid,) = run("keys", "rotate").lines
    assert kid not in before
    assert f"signing key {kid}" in run("check").out


@pytest.mark.requirement("keys.secret_changes")
def test_keys_in_a_file_are_sealed_by_no_secret(run: Run) -> None:
    assert run("keys", "reseal").failed_with("sealed by no secret: BANKDATA_KEYS_SECRET is about PostgreSQL.")


@pytest.mark.requirement("cli.keys")
def test_the_registration_token_is_the_same_every_time(run: Run) -> None:
    first = run("registration-token")
    assert len(first.lines) == 1
    assert run("registration-token") == first


@pytest.mark.requirement("cli.log")
def test_the_record_of_a_user_is_shown_by_hour_and_operation(run: Run) -> None:
    name = f"person{next(NUMBERS)}"
    run("users", "add", name, "--random")
    assert run("log", "--user", name).lines == []
    run("token", "--user", name)
    (line,) = run("log", "--user", name).lines
    assert line.split("\t")[1:] == ["bankdata token", "issueToken", "once", "0 refused"]
    (told,) = (json.loads(each) for each in run("log", "--user", name, "--json").lines)
    assert (told["operation"], told["calls"], told["refusals"]) == ("issueToken", 1, 0)
    assert run("log", "--user", name, "--since", "2199-01-01").lines == []
    assert run("log", "--user", "nobody").failed_with("There is no user named")
    assert run("log", "--user", name, "--since", "yesterday").code == 2


@pytest.mark.requirement("oauth.second_factor")
def test_a_second_factor_is_turned_off_where_there_is_one(run: Run) -> None:
    name = f"person{next(NUMBERS)}"
    run("users", "add", name, "--random")
    assert run("users", "second-factor", "off", name).failed_with(f"{name} has no second factor.")
    assert run("users", "second-factor", "on", name).code == 2
    assert run("users", "second-factor", "off", "nobody").failed_with("There is no user named")


@pytest.mark.requirement("cli.simplefin-token")
def test_a_setup_token_stands_alone_on_standard_output(run: Run) -> None:
    made = run("simplefin-token", "--user", "demo", "--name", "Actual", "--account", "Girokonto", "--lasts", "30")
    assert (made.code, made.err) == (0, "Paste this into the app. It works once, for 24 hours.\n")
    (token,) = made.lines
    assert "/simplefin/claim/" in base64.b64decode(token, validate=True).decode()
    assert any("\tActual\tread:accounts read:transactions" in line for line in run("grants", "list").lines)
    figures = run("simplefin-token", "--user", "demo", "--name", "Balances", "--figures-only")
    assert figures.code == 0
    assert any(line.endswith("\tBalances\tread:accounts") for line in run("grants", "list").lines)
    assert run("simplefin-token", "--user", "demo", "--name", " ").failed_with("The client needs a name.")
    assert run("simplefin-token", "--user", "demo", "--name", "x", "--lasts", "0").failed_with("from 1 to 365 days")
    assert run("simplefin-token", "--user", "demo", "--name", "x", "--account", "none").failed_with(
        "The user has no account with this id"
    )
    assert run("simplefin-token", "--user", "nobody", "--name", "x").failed_with("There is no user named")


@pytest.mark.requirement("cli.simplefin-token")
def test_no_setup_token_is_made_where_simplefin_is_off(copied: Callable[[], Path]) -> None:
    off = {"SIMPLEFIN_SERVER": "off"}
    refused = bankdata("simplefin-token", "--user", "demo", "--name", "x", "--data", copied(), settings=off)
    assert refused.failed_with("SimpleFIN is not served: BANKDATA_SIMPLEFIN_SERVER is off.")


@pytest.mark.requirement("cli.subscriptions")
@pytest.mark.sampled
def test_a_recurring_payment_is_listed_confirmed_dismissed_and_left_alone_again(run: Run, new_user: NewUser) -> None:
    name = new_user(bank=True)

    def listed() -> dict[str, list[str]]:
        lines = run("subscriptions", "list", "--user", name).lines
        return {cells[0]: cells for cells in (line.split("\t") for line in lines)}

    first = next(iter(listed()))
    for verb, confirmation in (("confirm", "confirmed"), ("dismiss", "dismissed"), ("reset", "none")):
        done = run("subscriptions", verb, first, "--user", name)
        assert (done.code, done.err.endswith(f": {confirmation}.\n")) == (0, True)
        assert listed()[first][5] == confirmation
    assert {cells[1] for cells in listed().values()} == {"outgoing", "incoming"}
    assert run("subscriptions", "confirm", "sub_x", "--user", name).failed_with("The user has no recurring payment")


@pytest.mark.requirement("cli.calendar")
def test_a_calendar_address_stands_alone_on_standard_output_and_ends(run: Run) -> None:
    name = f"person{next(NUMBERS)}"
    run("users", "add", name, "--random")
    assert run("calendar", "revoke", "--user", name).failed_with(f"{name} has no calendar link.")
    first, second = (run("calendar", "link", "--user", name) for _ in range(2))
    assert len(first.lines) == len(second.lines) == 1
    assert first.lines != second.lines
    assert first.lines[0].endswith("/payments.ics")
    assert "It is shown only this once" in first.err
    assert run("calendar", "revoke", "--user", name).err == "Ended.\n"
    assert run("calendar", "link", "--user", "nobody").failed_with("There is no user named")
    deeds = {line.split("\t")[2]: line.split("\t")[3] for line in run("log", "--user", name).lines}
    assert deeds == {"makeCalendarLink": "2 times", "endCalendarLink": "once"}


@pytest.mark.requirement("people.commands")
@pytest.mark.sampled
def test_people_are_invited_marked_paused_and_given_a_new_password_by_command(run: Run) -> None:
    name = f"person{next(NUMBERS)}"
    run("users", "add", name, "--random")
    for command in (["invite"], ["password-link", name], ["sign-in-link", name]):
        made = run("users", *command)
        assert re.fullmatch(r"http://\S+/join#[\w-]{43}", made.out.strip())
    assert "Revoked 1 invitation." in run("users", "uninvite").err
    assert run("users", "operator", name, "on").code == 0
    assert f"{name}\tactive subscription, operator\t0 bank connections" in run("users", "list").lines
    last = "This is the last operator who is not paused"
    for command in (["operator", name, "off"], ["pause", name], ["remove", name, "--yes"]):
        assert run("users", *command).failed_with(last)
    other = f"person{next(NUMBERS)}"
    run("users", "add", other, "--random")
    run("users", "operator", other, "on")
    assert run("users", "pause", name).code == 0
    assert f"{name}\tactive subscription, operator, paused\t0 bank connections" in run("users", "list").lines
    assert run("users", "unpause", name).code == 0
    assert run("users", "remove", name, "--yes").code == 0
    assert run("users", "operator", name, "on").failed_with("There is no user named")
    for command in (["link", other, "248289761001"], ["unlink", other]):
        assert run("users", *command).failed_with("No provider is set: BANKDATA_OIDC_ISSUER.")


@pytest.mark.requirement("household.commands")
@pytest.mark.sampled
def test_accounts_are_shared_by_command(run: Run) -> None:
    giver, receiver = (f"person{next(NUMBERS)}" for _ in range(2))
    for name in (giver, receiver):
        run("users", "add", name, "--random")
    (made,) = run("shares", "add", receiver, "--user", giver, "--until", "2099-03-31").lines
    assert run("shares", "list", "--user", giver).lines == [f"{made}\tto {receiver}\toffered\t2099-03-31T22:00+00:00"]
    assert run("shares", "add", receiver, "--user", giver).failed_with("already")
    assert run("shares", "add", receiver, "--user", giver, "--until", "9999-12-31").failed_with("a day before 2200")
    assert run("shares", "add", giver, "--user", giver).failed_with("Nobody shares with themselves.")
    assert run("shares", "accept", made, "--user", giver).failed_with("There is no such offer.")
    assert run("shares", "accept", made, "--user", receiver).code == 0
    assert run("shares", "list", "--user", receiver).lines == [
        f"{made}\tfrom {giver}\taccepted\t2099-03-31T22:00+00:00"
    ]
    assert run("shares", "end", made, "--user", receiver).code == 0
    assert run("shares", "end", made, "--user", receiver).failed_with("There is no such share.")
    assert run("shares", "add", "--user", giver).failed_with("Say to whom: a name, or --invite.")
    (link,) = run("shares", "add", "--invite", "--user", giver).lines
    assert "/join#" in link
    listed = run("shares", "list", "--user", giver).lines[0].split("\t")
    assert listed[1:3] == ["to …", "offered"]
    assert run("shares", "end", listed[0], "--user", giver).code == 0
    (made,) = run("shares", "add", receiver, "--user", giver, "--pass-on").lines
    assert run("shares", "list", "--user", giver).lines == [f"{made}\tto {receiver}\toffered\tno end\tapps too"]
