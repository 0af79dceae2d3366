"""Files that are damaged or hostile: a sentence, no crash, no half import; what is good beside them is imported."""

import io
import json
import os
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from handlers.cli import main
from handlers.commands.control_socket import CommandError
from storage.importing import ingest
from tests.imports.command_line import Shell
from tests.imports.household import Household
from tests.imports.statement_chain import chain
from tests.imports.statements_in_xml import GIRO, SAVINGS, camt

NAMESPACE = "urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"
CSV = "Date,Description,Amount,Currency\n2026-03-01,Coffee,-3.50,EUR\n"
MT940 = ":20:S\r\n:25:37040044/0532013000\r\n:28C:1/1\r\n:60F:C260101EUR100,00\r\n"
ATTACKS: dict[str, bytes] = {
    "entity bomb": b'<!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
    + f'<Document xmlns="{NAMESPACE}"><BkToCstmrStmt><Stmt><Id>&b;</Id></Stmt></BkToCstmrStmt></Document>'.encode(),
    "external entity": b'<!DOCTYPE d [<!ENTITY a SYSTEM "file:///etc/hostname">]>'
    + f'<Document xmlns="{NAMESPACE}"><BkToCstmrStmt><Stmt><Id>&a;</Id></Stmt></BkToCstmrStmt></Document>'.encode(),
    "deep nesting": f'<Document xmlns="{NAMESPACE}"><BkToCstmrStmt><Stmt>'.encode() + b"<a>" * 100_000,
    "long line of XML": f'<Document xmlns="{NAMESPACE}"><BkToCstmrStmt><Stmt><Id>'.encode() + b"A" * 12_000_000,
    "long line of MT940": f"{MT940}:61:".encode() + b"1" * 1_000_000,
    "long field of MT940": f"{MT940}:61:2601010101D1,00NTRFNONREF\r\n:86:".encode() + b"x\r\n" * 100_000,
    "long line of OFX": b"OFXHEADER:100\n\n<OFX><BANKMSGSRSV1><STMTTRNRS><MEMO>" + b"A" * 1_000_000,
    "open tags of OFX": b"OFXHEADER:100\n\n<OFX>" + b"<A>" * 300_000,
    "long line of CSV": f'{CSV}2026-03-02,"'.encode() + b"A" * 1_000_000,
    "deep JSON": b'{"id":' + b"[" * 60_000,
    "long line of JSON": b'{"id":"' + b"A" * 1_000_000,
    "JSON of another program": b'{"amount": -3.5}\n',
    "Parquet that is none": b"PAR1" + b"\xff" * 1000 + b"\xf0\x03\0\0PAR1",
    "Parquet that ends at once": b"PAR1",
    "long line of a ledger": b"1970-01-01 open Equity:Opening-Balances\n" + b"1" * 1_000_000,
    "a ledger of another program": b"2014-05-01 open Assets:Bank USD\n",
    "NULs in CSV": CSV.encode() + b"\0" * 100,
    "NULs": b"\0" * 100_000,
    "nothing": b"",
    "a byte order mark": b"\xef\xbb\xbf",
    "another encoding": CSV.encode("utf-32"),
    "a picture": b"\x89PNG\r\n\x1a\n" + b"\0" * 100,
}


def zipped(*files: tuple[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as container:
        for name, content in files:
            container.writestr(name, content)
    return stream.getvalue()


@pytest.mark.requirement("import.attacks")
@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.sampled
def test_an_attack_is_refused_in_a_sentence_and_leaves_nothing(
    name: str, shell: Shell, write: Callable[..., Path]
) -> None:
    good = write("good.csv", CSV)
    refused, imported = shell.import_(write("attack", ATTACKS[name]), good, code=1)
    assert refused["error"][0].isupper()
    assert refused["error"].endswith(".")
    assert (refused["new"], refused["statements"]) == (0, [])
    assert (imported["error"], imported["new"]) == (None, 1)
    assert len(shell.rows("id")) == 1


@pytest.mark.requirement("import.attacks")
def test_a_container_is_imported_whole_or_not_at_all(shell: Shell, write: Callable[..., Path]) -> None:
    bad = write("bad.zip", zipped(("a.csv", CSV.encode()), ("b.csv", b"not a statement")))
    (report,) = shell.import_(bad, code=1)
    assert report["error"].startswith("File 2 of the ZIP container: ")
    assert shell.rows("id") == []
    assert shell.rows("id", "accounts") == []


@pytest.mark.requirement("import.attacks")
def test_names_in_a_container_are_never_paths(shell: Shell, write: Callable[..., Path], tmp_path: Path) -> None:
    name = f"../../../../../../../../{tmp_path}/escaped.csv"
    (report,) = shell.import_(write("a.zip", zipped((name, CSV.encode()))))
    assert report["new"] == 1
    assert not (tmp_path / "escaped.csv").exists()


@pytest.mark.requirement("import.whole-or-not")
def test_a_file_cut_off_anywhere_is_refused_or_whole(shell: Shell, write: Callable[..., Path]) -> None:
    content = chain(3).files[1].content
    pieces = [write(f"{at}.xml", content[:at]) for at in range(0, len(content) - 1, len(content) // 12)]
    for report in shell.import_(*pieces, code=1):
        assert report["error"] is not None
    assert shell.rows("id") == []


@pytest.mark.requirement("import.containers")
def test_the_files_of_a_container_meet_as_files(shell: Shell, write: Callable[..., Path]) -> None:
    """The same booking in two files of a container is one; twice in one file it is two."""
    twice = CSV + "2026-03-01,Coffee,-3.50,EUR\n"
    (report,) = shell.import_(write("a.zip", zipped(("a.csv", CSV.encode()), ("b.csv", twice.encode()))))
    assert (report["new"], report["known"]) == (2, 1)
    assert len(shell.rows("id")) == 2


@pytest.mark.requirement("import.dry-run")
def test_a_dry_run_reports_and_leaves_nothing(shell: Shell, write: Callable[..., Path]) -> None:
    result = shell("import", "--user", "eva", "--dry-run", write("a.csv", CSV))
    assert "(csv): 1 new, 0 known" in result.stdout
    for table in ("transactions", "accounts", "connections", "jobs", "journal", "statements"):
        assert shell.rows("*", table) == []


@pytest.mark.requirement("import.missing-file")
def test_a_file_that_is_not_there_is_told_and_the_others_are_imported(
    shell: Shell, write: Callable[..., Path], tmp_path: Path
) -> None:
    result = shell("import", "--user", "eva", tmp_path / "none.xml", tmp_path, write("a.csv", CSV), code=1)
    first, second, *_ = result.stdout.splitlines()
    assert first == f"{tmp_path}/none.xml: refused: The file cannot be read: No such file or directory."
    assert second == f"{tmp_path}: refused: The file cannot be read: Is a directory."
    assert result.stderr.endswith("Error: 2 of 3 files refused.\n")
    assert len(shell.rows("id")) == 1


@pytest.mark.requirement("import.attacks")
def test_a_person_has_so_many_bookings_at_most_over_all_files(
    eva: Household, write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "BOOKINGS_MAX", 2)
    eva.bring(write("one.xml", camt(GIRO, "2026-03-01 | -3.50 | Coffee | a |")))
    eva.bring(write("two.xml", camt(SAVINGS, "2026-03-02 | -4.50 | Coffee | b |")))
    before = eva.state()
    with pytest.raises(CommandError):
        eva.bring(write("three.xml", camt(GIRO, "2026-03-03 | -5.50 | Coffee | c |")))
    assert eva.state() == before
    assert eva.lines[-1].endswith("refused: This would make 3 transactions of one person; at most 2 can be kept.")


@pytest.mark.requirement("import.input")
def test_standard_input_pipes_and_names_that_are_no_text_are_read(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / os.fsdecode(b"b\xff.csv")
    file.write_text(CSV)
    assert shell.import_(file)[0]["file"] == f"{tmp_path}/b\ufffd.csv"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=[CSV])
    writer.start()
    [report] = shell.import_(pipe)
    writer.join()
    assert (report["file"], report["new"], report["known"]) == (str(pipe), 0, 1)
    arguments = ["import", "--user", "eva", "--json", "-"]
    result = CliRunner().invoke(main, arguments, input=CSV, env=shell.environment)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["file"] == "standard input"
    assert "standard input: CSV" in CliRunner().invoke(main, ["import", "--explain", "-"], input=CSV).stdout
    gone = shell("import", "--user", "eva", os.fsdecode(b"gone\xff"), code=1)
    assert "gone\ufffd cannot be read: No such file or directory." in gone.stderr


@pytest.mark.requirement("readers.zip")
def test_files_of_the_system_in_a_container_are_passed_over(shell: Shell, write: Callable[..., Path]) -> None:
    hidden = ["__MACOSX/a/._b.csv", "a/.DS_Store", "Thumbs.db", "a/Desktop.ini", ".hidden"]
    content = zipped(("a/b.csv", CSV.encode()), *((name, b"\0\x05x") for name in hidden))
    assert shell.import_(write("c.zip", content))[0]["new"] == 1
