"""Files of every format through the one entrance: told by content, taken from ZIP containers, refused with reason."""

import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from analytics.records import TransactionRecord
from connectors import archive
from connectors.connector import LimitExceeded, MalformedFile, SourceError, UnsupportedFile
from connectors.formats import FORMATS, format_name, format_of, read_records, read_statements
from connectors.limits import FILE_BYTES_MAX, ZIP_MEMBER_BYTES_MAX, ZIP_MEMBERS_MAX, ZIP_RATIO_MAX
from connectors.lines import Lines
from tests.conftest import chance, examples

Text = Callable[..., str]
BOOKING = ":61:2601300130D12,34NTRFNONREF\n:86:166?20SVWZ+Miete?32Erika"
OFX = "OFXHEADER:100\nDATA:OFXSGML\n\n<OFX><BANKMSGSRSV1><STMTTRNRS><STMTRS><CURDEF>EUR</STMTRS></STMTTRNRS></OFX>"


def packed(*files: tuple[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as container:
        for name, content in files:
            container.writestr(name, content)
    return stream.getvalue()


def drain(data: bytes) -> int:
    return sum(len(member.read(65_536)) for _, member in archive.statements(io.BytesIO(data)) for _ in range(2_000))


def rows(data: bytes) -> list[TransactionRecord]:
    return [record for record in read_records(io.BytesIO(data)) if isinstance(record, TransactionRecord)]


@pytest.mark.requirement("readers.detection")
def test_formats_are_told_by_content(message: Text, entry: Text, block: Text) -> None:
    samples = {
        "camt": message(entry()),
        "mt940": block(BOOKING),
        "ofx": OFX,
        "csv": "Date;Amount;Text\n1;2;3\n",
        "jsonl": '{"id":"txn_1"}\n',
        "parquet": "PAR1",
        "beancount": "1970-01-01 open Equity:Opening-Balances\n",
        "qif": "!Type:Bank\n",
        "excel": "PK\x03\x04" + "\0" * 26 + "[Content_Types].xml",
    }
    for name, content in samples.items():
        found = format_of(content.encode())
        assert found is not None
        assert found.name == name
    assert set(samples) == {kind.name for kind in FORMATS}
    assert format_name(io.BytesIO(packed(("a", block(BOOKING))))) == "zip"
    assert format_name(io.BytesIO(b"\x7fELF\x00\x00\x00")) is None


@pytest.mark.requirement("readers.detection")
@pytest.mark.parametrize("name", ["a.txt", "CSV.CSV", "statement", "x.zip"])
def test_the_name_of_a_file_says_nothing(name: str, tmp_path: Path, message: Text, entry: Text) -> None:
    path = tmp_path / name
    path.write_text(message(entry()))
    (batch,) = read_statements(path)
    assert batch.id.startswith("file:")
    assert format_name(path) == "camt"


@pytest.mark.requirement("readers.refusal")
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"\xef\xbb\xbf \r\n", "empty"),
        (b"%PDF-1.7", "not a bank statement"),
        (b"<html><body/></html>", "a web page or other XML"),
        (b"<Document xmlns='urn:iso:std:iso:20022:tech:xsd:pain.001.001.09'/>", "not a bank statement"),
        (b":20:only a tag", "not a bank statement"),
    ],
)
def test_other_files_are_refused(content: bytes, reason: str) -> None:
    with pytest.raises(UnsupportedFile, match=reason):
        rows(content)


@pytest.mark.requirement("readers.refusal")
def test_a_file_over_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as stream:
        stream.truncate(FILE_BYTES_MAX + 1)
    with pytest.raises(LimitExceeded):
        list(read_statements(path))


@pytest.mark.requirement("readers.zip")
def test_every_file_of_a_container_is_a_batch_of_its_own(message: Text, entry: Text, block: Text) -> None:
    data = packed(
        ("a.xml", message(entry())), ("deep/b.sta", block(BOOKING)), ("__MACOSX/._a", b"x"), ("c.pdf", b"%PDF-")
    )
    identities = []
    for batch in read_statements(io.BytesIO(data)):
        assert sum(isinstance(record, TransactionRecord) for record in batch.records) == 1
        identities.append(batch.id)
    assert [identity.rpartition("/")[2] for identity in identities] == ["1", "2"]
    assert len({identity.rpartition("/")[0] for identity in identities}) == 1


@pytest.mark.requirement("readers.zip")
def test_a_file_without_a_name_is_read_like_any_other(block: Text) -> None:
    data = packed(("a.sta", block(BOOKING))).replace(b"a.sta", b"\0.sta")  # a name ends at its first NUL
    assert len(rows(data)) == len(rows(block(BOOKING).encode()))


@pytest.mark.requirement("security.zip")
def test_names_in_a_container_are_never_used(message: Text, entry: Text, tmp_path: Path) -> None:
    assert len(rows(packed(("../../../etc/cron.d/x", message(entry())), ("C:\\x", message(entry()))))) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("security.zip")
def test_a_container_in_a_container_is_not_opened(block: Text) -> None:
    with pytest.raises(UnsupportedFile, match="inside a ZIP"):
        rows(packed(("inner.zip", packed(("a", block(BOOKING))))))


@pytest.mark.requirement("security.zip")
def test_the_number_of_files_is_limited(block: Text) -> None:
    many = [(str(number), block(BOOKING)) for number in range(ZIP_MEMBERS_MAX)]
    assert len(rows(packed(*many))) == ZIP_MEMBERS_MAX
    with pytest.raises(LimitExceeded):
        rows(packed(*many, ("one more", block(BOOKING))))


@pytest.mark.requirement("security.zip")
def test_a_listing_of_a_hundred_thousand_files_is_not_even_read(block: Text) -> None:
    data = packed(("a", block(BOOKING)))
    place = data.index(b"PK\x01\x02")
    entry, end = data[place : data.index(b"PK\x05\x06")], bytearray(data[data.index(b"PK\x05\x06") :])
    end[12:16] = (len(entry) * 100_000).to_bytes(4, "little")
    with pytest.raises(LimitExceeded, match="more than 100 files"):
        rows(data[:place] + entry * 100_000 + bytes(end))


@pytest.mark.requirement("security.zip")
def test_the_listing_that_zip64_states_counts_too(block: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of the listing may state one of 47 bytes while its ZIP64 form, which readers believe, states another."""
    data = packed(("a", block(BOOKING)), ("b", block(BOOKING)))
    begin, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    large = struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 2, 2, end - begin, begin)
    place = struct.pack("<4sIQI", b"PK\x06\x07", 0, end, 1)
    data = data[:end] + large + place + data[end : end + 12] + (47).to_bytes(4, "little") + data[end + 16 :]
    assert len(rows(data)) == 2
    monkeypatch.setattr("connectors.archive.ZIP_LISTING_BYTES_MAX", end - begin - 1)
    with pytest.raises(LimitExceeded, match="more than 100 files"):
        rows(data)


@pytest.mark.requirement("security.zip")
def test_a_bomb_is_refused_while_it_is_read() -> None:
    data = packed(("bomb", b"0" * 3_000_000))
    with pytest.raises(LimitExceeded, match=f"{ZIP_RATIO_MAX} to 1"):
        drain(data)


@pytest.mark.requirement("security.zip")
def test_the_size_of_one_file_is_limited() -> None:
    assert drain(packed(("large", bytes(ZIP_MEMBER_BYTES_MAX)), method=zipfile.ZIP_STORED)) == ZIP_MEMBER_BYTES_MAX
    data = packed(("large", bytes(ZIP_MEMBER_BYTES_MAX + 1)), method=zipfile.ZIP_STORED)
    with pytest.raises(LimitExceeded):
        drain(data)


@pytest.mark.requirement("security.zip")
def test_damaged_encrypted_and_unusual_containers_are_refused(message: Text, entry: Text) -> None:
    text = message("".join(entry(f"{number}.17") for number in range(200)))
    data = packed(("a.xml", text))
    with pytest.raises(MalformedFile, match="damaged or cut off"):
        rows(data[:-30])
    damaged = bytearray(data)
    damaged[200] ^= 0xFF
    with pytest.raises(MalformedFile, match="file 1 of the ZIP container"):
        rows(bytes(damaged))
    with pytest.raises(UnsupportedFile, match="packed in an unusual way"):
        rows(packed(("a.xml", text), method=zipfile.ZIP_BZIP2))
    encrypted = bytearray(data)
    encrypted[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(UnsupportedFile, match="encrypted"):
        rows(bytes(encrypted))


@pytest.mark.requirement("security.zip")
def test_a_container_without_a_statement_is_refused() -> None:
    for data in (packed(), packed(("a.pdf", b"%PDF-1.4"))):
        with pytest.raises(UnsupportedFile, match="holds no statement"):
            rows(data)


@pytest.mark.requirement("readers.refusal")
def test_a_refusal_names_the_file_of_the_container(message: Text, entry: Text) -> None:
    data = packed(("a", message(entry())), ("b", message(entry(amount="x"))))
    with pytest.raises(MalformedFile) as refusal:
        rows(data)
    assert str(refusal.value) == "file 2 of the ZIP container: entry 1: its amount is not a number."


@pytest.mark.requirement("security.fuzz")
@pytest.mark.parametrize("kind", ["camt", "mt940", "zip"])
def test_damaged_copies_are_read_or_refused_and_nothing_else(
    kind: str, message: Text, entry: Text, block: Text, balance: Text
) -> None:
    camt = message(
        entry(details="<Refs><EndToEndId>E</EndToEndId></Refs><RmtInf><Ustrd>Miete</Ustrd></RmtInf>") * 3,
        balances=balance("OPBD", "1") + balance("CLBD", "2"),
    )
    mt940 = block(BOOKING + "\n" + BOOKING, closing=":62F:C260131EUR87,66")
    whole = {"camt": camt.encode(), "mt940": mt940.encode(), "zip": packed(("a", camt), ("b", mt940))}[kind]
    dice = chance(kind)
    reasons: set[str] = set()
    for _ in range(examples(1500)):
        data = bytearray(whole)
        for _ in range(dice.choice((1, 1, 2, 8))):
            place = dice.randrange(len(data))
            change = dice.randrange(4)
            if change == 0:
                data[place] ^= 1 << dice.randrange(8)
            elif change == 1:
                data[place] = dice.randrange(256)
            elif change == 2:
                del data[place:]
            else:
                data[place:place] = data[place : place + dice.randrange(200)]
            if not data:
                break
        try:
            rows(bytes(data))
        except SourceError as refusal:
            reasons.add(str(refusal))
    assert all(reason and "Miete" not in reason for reason in reasons)
    assert len(reasons) > 1


@pytest.mark.requirement("readers.encodings")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
@pytest.mark.parametrize("size", [1, 2, 3, 65_536])
def test_lines_are_the_same_in_every_encoding_wherever_a_piece_of_the_file_ends(
    size: int, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.lines._CHUNK_BYTES", size)
    stream = io.BytesIO("eins zwei\r\nGrüße\n\nEnde".encode(encoding))
    assert list(Lines(stream, head=stream.read(8))) == ["eins zwei\n", "Grüße\n", "\n", "Ende"]


@pytest.mark.requirement("readers.encodings")
def test_a_file_of_carriage_returns_alone_has_lines_too() -> None:
    assert list(Lines(io.BytesIO(b"a\rb\rc"))) == ["a\n", "b\n", "c"]
