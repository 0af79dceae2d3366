"""Workbooks of Excel and OpenDocument, and QIF, are read by the rules for CSV."""

import io
import zipfile
from collections.abc import Sequence
from datetime import date
from decimal import Decimal

import pytest

from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from connectors import formats
from connectors.bank_csv.layouts import CsvLayout, guess_in_words
from connectors.connector import LimitExceeded, MalformedFile, UnsupportedFile
from connectors.read_as_csv import workbook

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
Cell = str | int | float | date
TABLE: list[list[Cell]] = [
    ["IBAN", "DE02120300000000202051"],
    [],
    ["Buchungstag", "Name", "Verwendungszweck", "Betrag", "Währung", "Saldo"],
    [date(2026, 3, 2), "Bäckerei", "Brot", -3.5, "EUR", 996.5],
    [date(2026, 3, 15), "Firma", "Lohn", 2450, "EUR", 3446.5],
    [date(2026, 3, 16), "Kiosk", "Eis", -19.989999999999998, "EUR", 3426.51],
]


def packed(*files: tuple[str, str | bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as container:
        for name, content in files:
            container.writestr(name, content)
    return stream.getvalue()


def cell_of_excel(value: Cell) -> str:
    if isinstance(value, date):
        return f'<c s="1"><v>{(value - date(1899, 12, 30)).days}</v></c>'
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
    return f"<c><v>{value!r}</v></c>"


def excel(*sheets: Sequence[Sequence[Cell]]) -> bytes:
    """A workbook as Excel writes it, with what a reader needs."""
    numbers = range(1, len(sheets) + 1)
    tables = ["".join(f"<row>{''.join(map(cell_of_excel, row))}</row>" for row in rows) for rows in sheets]
    related = "".join(
        f'<Relationship Id="r{n}" Type="{OFFICE}/worksheet" Target="worksheets/{n}.xml"/>' for n in numbers
    )
    listed = "".join(f'<sheet name="{n}" sheetId="{n}" r:id="r{n}"/>' for n in numbers)
    main = f'<Relationship Id="r1" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
    styles = '<cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'
    return packed(
        ("[Content_Types].xml", "<Types/>"),
        ("_rels/.rels", f'<Relationships xmlns="{PACKAGE}">{main}</Relationships>'),
        ("xl/workbook.xml", f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{listed}</sheets></workbook>'),
        ("xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{PACKAGE}">{related}</Relationships>'),
        ("xl/styles.xml", f'<styleSheet xmlns="{MAIN}">{styles}</styleSheet>'),
        *(
            (f"xl/worksheets/{n}.xml", f'<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData></worksheet>')
            for n, rows in zip(numbers, tables, strict=True)
        ),
    )


def open_document(rows: Sequence[Sequence[str]]) -> bytes:
    cell = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
    cells = "".join(f"<table:table-row>{''.join(map(cell.format, row))}</table:table-row>" for row in rows)
    names = "".join(f' xmlns:{n}="urn:oasis:names:tc:opendocument:xmlns:{n}:1.0"' for n in ("office", "table", "text"))
    body = f'<office:spreadsheet><table:table table:name="1">{cells}</table:table></office:spreadsheet>'
    return packed(
        ("mimetype", "application/vnd.oasis.opendocument.spreadsheet"),
        ("META-INF/manifest.xml", "<manifest/>"),
        ("content.xml", f"<office:document-content{names}><office:body>{body}</office:body></office:document-content>"),
    )


Found = tuple[list[str], list[tuple[str, str, str | None]], list[StatementRecord], list[CsvLayout]]


def found(content: bytes) -> Found:
    """The accounts, the day, amount and name of each booking, the statements, and the guesses."""
    told: list[CsvLayout] = []
    records = list(formats.read_records(io.BytesIO(content), on_layout=told.append))
    bookings = [each for each in records if isinstance(each, TransactionRecord)]
    return (
        [f"{each.stable_key} {each.currency}" for each in records if isinstance(each, AccountRecord)],
        [(str(each.booking_date), str(each.amount), each.counterpart_name) for each in bookings],
        [each for each in records if isinstance(each, StatementRecord)],
        told,
    )


@pytest.mark.requirement("readers.workbook")
def test_a_workbook_is_read_with_its_days_numbers_and_balances() -> None:
    file = excel([["Hinweise"]], TABLE)
    assert formats.format_name(io.BytesIO(file)) == "excel"
    accounts, bookings, statements, told = found(file)
    assert accounts == ["DE02120300000000202051 EUR"]
    assert bookings == [
        ("2026-03-02", "-3.50", "Bäckerei"),
        ("2026-03-15", "2450", "Firma"),
        ("2026-03-16", "-19.99", "Kiosk"),
    ]
    assert statements[-1].closing == Decimal("3426.51")
    assert 'amount from "Betrag"' in guess_in_words(told[0])
    assert found(packed(("march.xlsx", file)))[1] == bookings


@pytest.mark.requirement("readers.workbook")
def test_texts_of_a_workbook_and_sheets_of_opendocument_are_read_as_in_csv() -> None:
    rows = [["Datum", "Text", "Betrag"], ["02.03.2026", "Miete", "-1.250,00"], ["15.03.2026", "Lohn", "3,50"]]
    expected = [("2026-03-02", "-1250.00", None), ("2026-03-15", "3.50", None)]
    assert found(excel(rows))[1] == expected
    assert found(open_document(rows))[1] == expected
    whole: list[list[Cell]] = [["Datum", "Text", "Betrag"], [date(2026, 3, 2), "Miete", -1250]]
    assert found(excel(whole))[1] == [("2026-03-02", "-1250", None)]
    dinars: list[list[Cell]] = [["Datum", "Text", "Betrag", "Währung"], [date(2026, 3, 2), "Miete", -1.234, "KWD"]]
    assert Decimal(found(excel(dinars))[1][0][1]) == Decimal("-1.234")


@pytest.mark.requirement("readers.workbook")
def test_a_workbook_that_cannot_be_read_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsupportedFile) as empty:
        found(excel([["Hinweise"]]))
    assert str(empty.value) == "no sheet of the workbook holds transactions."
    for damaged in (excel(TABLE)[:400], b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)):
        with pytest.raises(MalformedFile) as refusal:
            found(damaged)
        assert str(refusal.value) == "the workbook is damaged or has a password."
    monkeypatch.setattr(workbook, "ZIP_TOTAL_BYTES_MAX", 100)
    with pytest.raises(LimitExceeded) as more:
        found(excel(TABLE))
    assert str(more.value) == "the workbook holds more than is allowed."
    monkeypatch.setattr(workbook, "ZIP_MEMBER_BYTES_MAX", 100)
    with pytest.raises(LimitExceeded) as larger:
        found(excel(TABLE))
    assert str(larger.value) == "the workbook is larger than allowed."


QIF = """!Account
NChecking
TBank
^
!Type:Bank
D3/ 2'26
T-1,250.00
PRent
MMarch
^
D3/15'26
T2,450.10
PNorthwind
^
!Account
NCard
TCCard
^
!Type:CCard
D03/28/26
U-87.25
T-87.25
PGreen
^
!Type:Cat
NFood
^
"""


@pytest.mark.requirement("readers.qif")
def test_qif_is_read_account_by_account_and_its_currency_said_as_assumed() -> None:
    assert formats.format_name(io.BytesIO(QIF.encode())) == "qif"
    accounts, bookings, _, told = found(QIF.encode())
    assert accounts == ["CSV/Checking EUR", "CSV/Card EUR"]
    assert bookings == [
        ("2026-03-02", "-1250.00", "Rent"),
        ("2026-03-15", "2450.10", "Northwind"),
        ("2026-03-28", "-87.25", "Green"),
    ]
    assert "currency EUR assumed, as the file names none" in guess_in_words(told[0])


@pytest.mark.requirement("readers.qif")
def test_qif_of_another_country_and_an_opening_balance() -> None:
    german = "!Type:Bank\nD02.03.2026\nT-1.250,00\nPMüller\n^\nD22.03.2026\nT3,50\n^\n"
    assert [each[:2] for each in found(german.encode("cp1252"))[1]] == [
        ("2026-03-02", "-1250.00"),
        ("2026-03-22", "3.50"),
    ]
    _, bookings, statements, _ = found(
        b"!Type:Bank\nD01/01/2026\nT100.00\nPOpening Balance\n^\nD01/22/2026\nT-5.00\n^\n"
    )
    assert (bookings, statements[0].opening) == ([("2026-01-22", "-5.00", None)], Decimal("100.00"))


@pytest.mark.requirement("readers.qif")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("!Type:Bank\nD03/22/2026\nT-5.00\n", "Line 3: a record has no end."),
        ("!Type:Bank\nD03/22/2026\nT-5.00\n!Type:Cash\n", "Line 4: a record has no end."),
        ("!Type:Bank\nD03/22/2026\nTx\n^\n", "Line 4: a record without an amount that can be read."),
        ("!Type:Invst\nD03/22/2026\nNBuy\nT-5.00\n^\n", "the QIF file holds no transactions of an account."),
    ],
)
def test_qif_that_cannot_be_read_whole_is_refused(text: str, reason: str) -> None:
    with pytest.raises((MalformedFile, UnsupportedFile)) as refusal:
        found(text.encode())
    assert str(refusal.value) == reason


@pytest.mark.requirement("readers.qif")
def test_qif_whose_days_may_be_swapped_is_refused() -> None:
    text = "!Type:Bank\nD03-02-2026\nT-5.00\n^\nD05-03-2026\nT-6.00\n^\nD04-01-2026\nT-6.00\n^\n"
    with pytest.raises(UnsupportedFile, match="day and month of the dates cannot be told apart"):
        found(text.encode())
