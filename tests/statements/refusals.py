"""Every sentence with which a reader refuses a file: the smallest file for it, and one beside it that is read."""

import io
import json
import zipfile
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import NamedTuple

import polars as pl

from connectors.own_formats.csv import COLUMNS
from connectors.own_formats.jsonl import BOOKING as BOOKING_MEMBERS
from connectors.own_formats.parquet_reader import ACCOUNT, BOOKING
from connectors.own_formats.parquet_writer import DTYPES


class Refusal(NamedTuple):
    """`limit` names a constant that is lowered for both files."""

    sentence: str
    refused: str | bytes
    read: str | bytes
    limit: tuple[str, int] | None = None


def refusals() -> Iterator[Refusal]:
    """All of them, format by format."""
    yield from _any_format()
    yield from _archive()
    yield from _camt()
    yield from _mt940()
    yield from _ofx()
    yield from _csv()
    yield from _unknown_csv()
    yield from _own_csv()
    yield from _jsonl()
    yield from _beancount()
    yield from _parquet()


def _any_format() -> Iterator[Refusal]:
    yield Refusal("the file is empty.", "\n", CSV)
    yield Refusal(
        "not a bank statement in a known format (camt, MT940, OFX, QIF, CSV, Excel, or a ZIP of them).",
        "Date;Amount",
        CSV,
    )
    page = "the file is a web page or other XML, whatever its name: open it in Excel and save it as .xlsx or CSV."
    for begin in (
        "<html>",
        "\ufeff\n<!DOCTYPE HTML>",
        "MIME-Version: 1.0\n",
        '<?xml version="1.0"?>\n<?mso-application?>',
    ):
        yield Refusal(page, f"{begin}<table><tr><td>Date;Text;Amount</td></tr></table>\n{CSV}", CSV)
    size = len(CSV)
    yield Refusal("the file is larger than allowed.", CSV + "\n", CSV, ("connectors.formats.FILE_BYTES_MAX", size))


ZIP_LISTING = 46 + len("a") + 46 + len("b")


def _zip(*files: tuple[str, str | bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as container:
        for name, content in files:
            container.writestr(name, content)
    return stream.getvalue()


def _archive() -> Iterator[Refusal]:
    one, two = _zip(("a", CSV)), _zip(("a", CSV), ("b", CSV))
    archive = "connectors.archive."
    yield Refusal("the ZIP container is damaged or cut off.", one[:-1], one)
    yield Refusal("more than 1 files in the ZIP container.", two, one, (archive + "ZIP_MEMBERS_MAX", 1))
    yield Refusal(
        "more than 100 files in the ZIP container.", two, one, (archive + "ZIP_LISTING_BYTES_MAX", ZIP_LISTING - 1)
    )
    size = len(CSV)
    yield Refusal("the ZIP container holds more than is allowed.", two, one, (archive + "ZIP_TOTAL_BYTES_MAX", size))
    second = two.rindex(b"PK\x01\x02")  # the second file's place in the listing, made that of the first
    yield Refusal(
        "the ZIP container lists the same content twice.", two[: second + 42] + bytes(4) + two[second + 46 :], two
    )
    yield Refusal(
        "file 1 of the ZIP container is encrypted or packed in an unusual way.",
        _zip(("a", CSV), method=zipfile.ZIP_BZIP2),
        _zip(("a", CSV), method=zipfile.ZIP_DEFLATED),
    )
    longer = _zip(("a", CSV + "\n"))
    yield Refusal(
        "file 1 of the ZIP container is larger than allowed.", longer, one, (archive + "ZIP_MEMBER_BYTES_MAX", size)
    )
    table = CSV.replace("x", "x" * 20_000)
    yield Refusal(
        "file 1 of the ZIP container is packed more than 200 to 1.",
        _zip(("a", table + "\n"), method=zipfile.ZIP_DEFLATED),
        _zip(("a", table), method=zipfile.ZIP_DEFLATED),
        (archive + "ZIP_RATIO_FREE_BYTES", len(table)),
    )
    second = two.rindex(b"PK\x03\x04")  # where the second file begins
    yield Refusal("file 2 of the ZIP container is damaged.", two[:second] + b"PK\x03\x05" + two[second + 4 :], two)
    yield Refusal("file 1 of the ZIP container is damaged.", one.replace(b"2026", b"2025", 1), one)
    yield Refusal("the ZIP container holds no statement.", _zip(("a", "%PDF-1.7")), one)
    yield Refusal("a ZIP container inside a ZIP container is not opened.", _zip(("a", one)), one)
    yield Refusal("file 2 of the ZIP container: the file is empty.", _zip(("a", CSV), ("b", "")), two)


def _camt() -> Iterator[Refusal]:
    reader = "connectors.camt.reader."
    whole = _message(ENTRY)
    two = _message(ENTRY * 2)
    yield Refusal("the message holds no statement.", whole.replace(f"<Stmt>{ENTRY}</Stmt>", ""), whole)
    yield Refusal("line 1: not well-formed XML, or cut off.", whole[:-1], whole)
    yield Refusal(
        "the file declares a DOCTYPE, which no bank statement needs.", f"<!DOCTYPE Document>{whole}", f"<!---->{whole}"
    )
    yield Refusal("entry 1: stands outside a statement.", whole.replace("<Stmt>", "").replace("</Stmt>", ""), whole)
    yield Refusal("entry 2: stands outside its statement.", _message(f"{ENTRY}<X>{ENTRY}</X>"), two)
    yield Refusal("more than 1 transactions in one file.", two, whole, (reader + "ENTRIES_MAX", 1))
    statement = f"<Stmt>{ENTRY}</Stmt>"
    twice = whole.replace(statement, statement * 2)
    yield Refusal("more than 1 statements in one file.", twice, whole, (reader + "STATEMENTS_MAX", 1))
    balances = _message(BALANCE)
    yield Refusal(
        "more than 1 balances in one statement.", _message(BALANCE * 2), balances, (reader + "XML_BALANCES_MAX", 1)
    )
    yield Refusal("the file is larger than allowed.", whole + " ", whole, (reader + "FILE_BYTES_MAX", len(whole)))
    sentence = "one entry of the file is larger than allowed."
    yield Refusal(sentence, whole + " ", whole, (reader + "XML_ENTRY_BYTES_MAX", len(whole)))
    marks = whole.count("<") + whole.count("=")
    yield Refusal(sentence, f"<!---->{whole}", whole, (reader + "XML_ENTRY_MARKS_MAX", marks))
    named = _message(ENTRY.replace("</Ntry>", "<xxxxxx xmlns='u'/></Ntry>"))  # {u}xxxxxx
    yield Refusal(
        "a name of more than 9 characters, namespace included.",
        named.replace("<x", "<xx"),
        named,
        ("connectors.camt.texts.XML_TAG_CHARACTERS_MAX", 9),
    )
    yield Refusal("entry 1: has no amount.", whole.replace(">1</Amt>", "></Amt>"), whole)
    yield Refusal("entry 1: its amount is not a number.", whole.replace(">1<", ">1,0<"), whole.replace(">1<", ">1.0<"))
    yield Refusal("entry 1: is neither credit nor debit.", whole.replace("CRDT", "CREDIT"), whole)
    yield Refusal("entry 1: its BookgDt is not a date.", whole.replace("01-30", "02-30"), whole)
    undated = ENTRY.replace("<BookgDt><Dt>2026-01-30</Dt></BookgDt>", "")
    yield Refusal("entry 1: has no date.", _message(undated), _message(f"<CreDtTm>2026-01-30</CreDtTm>{undated}"))
    yield Refusal("a balance: its amount is not a number.", _message(BALANCE.replace(">1<", ">x<")), balances)


CSV = "Date;Amount;Text\n2026-01-01;1,00;x\n"
ENTRY = "<Ntry><Amt Ccy='EUR'>1</Amt><CdtDbtInd>CRDT</CdtDbtInd><BookgDt><Dt>2026-01-30</Dt></BookgDt></Ntry>"
BALANCE = "<Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy='EUR'>1</Amt><Dt><Dt>2026-01-31</Dt></Dt></Bal>"


def _message(content: str) -> str:
    return f"<Document><BkToCstmrStmt><Stmt>{content}</Stmt></BkToCstmrStmt></Document>"


BLOCK = ":20:X\n:25:1\n:60F:C260101EUR1,00\n:61:260131C1,00NTRF\n"


def _mt940() -> Iterator[Refusal]:
    reader, fields = "connectors.mt940.reader.", "connectors.mt940.fields."
    yield Refusal("more than 1 statements in one file.", BLOCK * 2, BLOCK, (reader + "STATEMENTS_MAX", 1))
    yield Refusal(
        "more than 1 transactions in one file.", BLOCK + ":61:260131C1,00NTRF\n", BLOCK, (fields + "ENTRIES_MAX", 1)
    )
    yield Refusal("line 4: a :61: that cannot be read.", BLOCK.replace("C1,00NTRF", "X1,00NTRF"), BLOCK)
    yield Refusal("line 4: a :61: with not an amount.", BLOCK.replace("C1,00N", "C1,0,0N"), BLOCK)
    yield Refusal("line 4: a :61: with a date that does not exist.", BLOCK.replace("260131C", "261331C"), BLOCK)
    digits = "9" * 15
    yield Refusal(
        "line 4: a :61: with an amount of too many digits.", BLOCK.replace("C1,", f"C9{digits},"),
        BLOCK.replace("C1,00N", f"C{digits},00N"),
    )  # fmt: skip
    yield Refusal("line 3: a balance that cannot be read.", BLOCK.replace("C260101", "X260101"), BLOCK)
    yield Refusal("line 3: a balance with not an amount.", BLOCK.replace("EUR1,00", "EUR1,0,0"), BLOCK)
    sentence = "Line 4: longer than 20 bytes."
    yield Refusal(sentence, BLOCK.replace("NTRF", "NTRFx"), BLOCK, ("connectors.lines.LINE_CHARACTERS_MAX", 20))
    yield Refusal("line 5: longer than allowed.", f"{BLOCK}x", BLOCK, (fields + "FILE_BYTES_MAX", len(BLOCK)))
    yield Refusal("more than 4 lines in one file.", f"{BLOCK}-", BLOCK, (fields + "LINES_MAX", 4))
    yield Refusal("Line 4: a NUL byte in a text file.", BLOCK.replace("C1,00", "\0C1,00"), BLOCK)
    utf16 = BLOCK.encode("utf-16-le")
    yield Refusal("line 5: not text in the encoding the file begins with.", utf16 + b"-", utf16)
    text = f"{BLOCK}:86:a\n"
    yield Refusal("line 6: a field of more than 1 lines.", f"{text}b\n", text, (fields + "FIELD_LINES_MAX", 1))
    yield Refusal(
        "line 5: a transaction with more text than allowed.",
        f"{BLOCK}:86:ab\n",
        text,
        (reader + "DETAILS_CHARACTERS_MAX", 2),
    )
    held, entry = BLOCK.replace("EUR1,00", "1,00"), ":61:260131C1,00NTRF\n"
    yield Refusal(
        "more than 1 transactions before the statement's currency.", held + entry * 2, held + entry,
        (reader + "HELD_ENTRIES_MAX", 1),
    )  # fmt: skip


BOOKING_OFX = "<STMTTRN><DTPOSTED>20260131<TRNAMT>1</STMTTRN>"


def _ofx_file(bookings: str, *, more: str = "") -> str:
    account = "<BANKACCTFROM><ACCTID>1</BANKACCTFROM>"
    return f"<OFX><STMTRS>{account}<BANKTRANLIST>{bookings}</BANKTRANLIST>{more}</STMTRS></OFX>"


def _ofx() -> Iterator[Refusal]:
    whole, two = _ofx_file(BOOKING_OFX), _ofx_file(BOOKING_OFX * 2)
    yield Refusal("Line 1: the file ends before its closing OFX tag.", whole.removesuffix("</OFX>"), whole)
    yield Refusal("The OFX file holds no account statement.", "<OFX></OFX>", whole)
    yield Refusal("The OFX file holds more than 1 transactions.", two, whole, ("connectors.ofx.reader.ENTRIES_MAX", 1))
    empty = _ofx_file("")
    tags = empty.count("<")
    yield Refusal(
        "Line 1: far more tags than transactions.", _ofx_file("", more="<X>"), empty,
        ("connectors.ofx.reader.TAGS_MAX", tags - 1),
    )  # fmt: skip
    yield Refusal("Line 1: a document type declaration is not allowed.", f"<OFX><!DOCTYPE OFX>{whole}", whole)
    long = ("connectors.ofx.tokens.VALUE_BYTES_MAX", 8)
    yield Refusal("Line 1: a value is longer than 8 bytes.", whole.replace("20260131", "202601311"), whole, long)
    yield Refusal("Line 1: a value is longer than 8 bytes.", whole + "x" * 9, whole + "x" * 8, long)
    yield Refusal("Line 1: a transaction stands outside of a statement.", f"<OFX>{BOOKING_OFX}{whole}", whole)
    yield Refusal(
        "Line 1: a transaction has two TRNAMT values.", whole.replace("<TRNAMT>1", "<TRNAMT>1<TRNAMT>1"), whole
    )
    yield Refusal("Line 1: an amount stands outside of a transaction.", _ofx_file("<TRNAMT>1"), empty)
    yield Refusal("Line 1: a statement names no account.", whole.replace("<ACCTID>1", "<BANKID>1"), whole)
    yield Refusal("Line 1: an amount cannot be read.", whole.replace("<TRNAMT>1", "<TRNAMT>x"), whole)
    balance = _ofx_file("", more="<LEDGERBAL><BALAMT>1</LEDGERBAL>")
    yield Refusal("Line 1: an amount cannot be read.", balance.replace("AMT>1", "AMT>x"), balance)
    currency = _ofx_file("", more="<CURDEF>EUR")
    yield Refusal("Line 1: a currency code cannot be read.", currency.replace("EUR", "EURO"), currency)
    yield Refusal("Line 1: a date cannot be read.", whole.replace("20260131", "20261331"), whole)
    yield Refusal(
        "Line 1: a transaction has no date.", whole.replace("<DTPOSTED>20260131", ""),
        whole.replace("<DTPOSTED>20260131", "").replace("<BANKTRANLIST>", "<BANKTRANLIST><DTEND>20260131"),
    )  # fmt: skip


def _csv() -> Iterator[Refusal]:
    tables = "connectors.bank_csv.tables."
    row = "2026-01-01;1,00;x\n"
    yield Refusal("Line 3: a NUL byte in a text file.", f"{CSV}\0".encode("utf-16"), CSV.encode("utf-16"))
    yield Refusal(
        "Line 3: longer than 20 bytes.", CSV + "x" * 20 + "\n", CSV, ("connectors.lines.LINE_CHARACTERS_MAX", 20)
    )
    yield Refusal("Line 6: far more lines than transactions.", CSV + "\n" * 4, CSV + "\n" * 3, (tables + "IDLE_MAX", 1))
    yield Refusal("Line 3: more than 3 columns.", f"{CSV}1;2;3;4\n", CSV, (tables + "COLUMNS_MAX", 3))
    yield Refusal(
        "Line 3: a closing quote is missing in the row that ends here.",
        f'{CSV}2026-01-01;1,00;"x\n',
        f'{CSV}2026-01-01;1,00;"x"\n',
    )
    half = f'{CSV}2026-01-01;1,00;"' + "x\n" * 65_536  # 131,072 characters since the quote
    yield Refusal(
        "Line 65539: a field is longer than 131072 characters, or its closing quote is missing.",
        half + "x",
        half + '"\n',
    )
    yield Refusal("The CSV file holds more than 1 transactions.", CSV + row, CSV, (tables + "ENTRIES_MAX", 1))
    yield Refusal("Line 4: the file ends inside a row.", f"{CSV}{row}2026-01-02;1,", CSV + row.rstrip())
    yield Refusal("Line 4: the booking date cannot be read.", f"{CSV}{row}2026-13-01;1,00;x\n", CSV + row)
    last = f"{CSV}2199-12-31;1,00;x\n"
    yield Refusal("Line 4: the booking date cannot be read.", f"{last}2200-01-01;1,00;x\n", last)
    yield Refusal("Line 3: the amount cannot be read.", f"{CSV}2026-01-01;x;x\n", CSV)
    yield Refusal("Line 3: the row ends after 1 of 3 columns.", f"{CSV}2026-01-01\n{row}", CSV)
    yield Refusal("The CSV file holds no transactions and no known layout.", "Date;Amount;Text\n", CSV)
    pending = "Date;Amount;Text\npending;1,00;x\n"
    yield Refusal("No transaction of the file has a date.", pending, pending + row)
    yield Refusal(
        "Line 3: too many transactions without a date.",
        f"{pending}pending;1,00;x\n{row}",
        pending + row,
        (tables + "UNDATED_MAX", 1),
    )


HINT = "A profile of your own can say it: docs/csv-profiles.md."


def _unknown_csv() -> Iterator[Refusal]:
    """A header without the words that are needed, above rows that say no more."""
    whole = CSV.replace("1,00", "1")  # a whole number may be anything
    yield Refusal(
        f"The CSV layout is unknown: no column is recognised as the booking date. {HINT}",
        whole.replace("Date", "X"),
        whole,
    )
    yield Refusal(
        f"The CSV layout is unknown: no column is recognised as the amount. {HINT}", whole.replace("Amount", "X"), whole
    )
    yield Refusal(
        f"The CSV layout is unknown: the dates have no known format. {HINT}", whole.replace("2026-01-01", "1"), whole
    )
    row = "2026-01-01;1,00;x\n"
    yield Refusal(
        f"The CSV layout is unknown: amounts use two decimal marks. {HINT}", CSV + row.replace(",", "."), CSV + row
    )
    yield Refusal(
        f"The CSV layout is unknown: decimals and thousands of the amounts cannot be told apart. {HINT}",
        CSV.replace("1,00", "1,000"),
        CSV,
    )
    swapped = f"The CSV layout is unknown: day and month of the dates cannot be told apart. {HINT}"
    yield Refusal(swapped, whole.replace("2026-01-01", "01/02/2026"), whole.replace("2026-01-01", "13/02/2026"))
    plain = "Date;Text;Amount;Original amount;Currency\n2026-01-01;x;-5,00;;EUR\n2026-01-01;x;-7,00;;USD\n"
    converted = "2026-01-01;x;-9,20;-10,00;USD\n"
    yield Refusal(
        f"The CSV layout is unknown: the currency of the amounts cannot be told. {HINT}", plain + converted, plain
    )
    exim = "Account,Date,Narration,Reference Number,Amount\n1,13/02/2026,x,1,1.00\n"
    yield Refusal("Day and month of the dates cannot be told apart.", exim.replace("13", "01"), exim)
    yield Refusal("Not a CSV file: no line has two columns.", '"x;;x"\n', CSV)
    below = "x\n"
    yield Refusal(
        "Not a CSV file: none of its first 1 rows has two columns.",
        below + CSV,
        CSV,
        ("connectors.bank_csv.recognition.HEADER_ROWS_MAX", 1),
    )


def _own_csv() -> Iterator[Refusal]:
    values = {
        "record": "booked", "account": "1", "account_currency": "EUR", "booking_date": "2026-01-01", "amount": "1",
        "currency": "EUR",
    }  # fmt: skip
    header, row = ",".join(COLUMNS) + "\n", ",".join(values.get(name, "") for name in COLUMNS) + "\n"
    whole = header + row
    yield Refusal("Line 1: not the header of a bankdata CSV.", whole.replace(",category\n", "\n"), whole)
    yield Refusal(
        "The file holds more than 1 lines.", whole + row, whole, ("connectors.own_formats.csv.ENTRIES_MAX", 1)
    )
    columns = len(COLUMNS)
    yield Refusal(f"Line 2: {columns + 1} columns where {columns} are expected.", header + "," + row, whole)
    yield Refusal("Line 2: cannot be read.", whole.replace("2026-01-01", "2026-02-30"), whole)


def _jsonl() -> Iterator[Refusal]:
    texts = dict.fromkeys((*BOOKING_MEMBERS.values(), "id"))
    told = texts | {
        "bookingDate": "2026-01-01", "amount": 1, "currency": "EUR", "isAdjustingEntry": False, "source": {},
        "bankAccount": {"iban": None, "accountName": None, "bankConnection": {"bankName": None}},
        "account": dict.fromkeys(("accountType", "bic", "balance", "balanceDate")) | {"key": "1", "currency": "EUR"},
    }  # fmt: skip
    row = json.dumps(told) + "\n"
    other = row.replace('"key": "1"', '"key": "2"')
    cells = "connectors.own_formats.cells."
    yield Refusal("not JSON lines that bankdata exported.", '{"id": "1"}\n', row)
    yield Refusal("Line 2: cannot be read.", row + row.replace(": 1,", ": true,"), row * 2)
    yield Refusal("The file holds more than 1 transactions.", row * 2, row, (cells + "ENTRIES_MAX", 1))
    yield Refusal("The file holds more than 1 accounts.", row + other, row * 2, (cells + "STATEMENTS_MAX", 1))
    yield Refusal("Line 1: cannot be read.", row.replace('"key": "1"', '"key": " "'), row)


def _beancount() -> Iterator[Refusal]:
    reader = "connectors.own_formats.beancount_reader."
    opened = "1970-01-01 open Equity:Opening-Balances\n"
    account = '1970-01-01 open Assets:A\n  account: "1"\n  account-currency: "EUR"\n'
    booked = '2026-01-01 * ""\n  Assets:A  1 EUR\n  Income:Other  -1 EUR\n'
    whole = opened + account + booked
    ours = "not a Beancount ledger that bankdata exported."
    yield Refusal(ours, account + booked, whole)
    yield Refusal(ours, f"{opened}1970-01-01 open Assets:A\n", whole)
    yield Refusal("Line 5: cannot be read.", whole.replace("2026-01-01", "2026-02-30"), whole)
    yield Refusal("Line 6: cannot be read.", whole.replace("Assets:A  1", "Assets:A 1"), whole)
    yield Refusal("The file holds more than 1 transactions.", whole + booked, whole, (reader + "ENTRIES_MAX", 1))
    yield Refusal("The file holds more than 1 accounts.", whole + account, whole, (reader + "STATEMENTS_MAX", 1))


def _parquet() -> Iterator[Refusal]:
    whole = _parquet_file(1)
    yield Refusal("not a Parquet file that bankdata exported.", _parquet_file(1, without="bank_text"), whole)
    yield Refusal("the Parquet file is damaged or cut off.", whole[:-1], whole)
    rows = ("connectors.own_formats.parquet_reader.ENTRIES_MAX", 1)
    yield Refusal("the file holds more than 1 rows.", _parquet_file(2), whole, rows)
    # account, currency (twice), balance, day, amount and three flags: 1 EUR EUR 2026-01-01 1.00000 false false false
    characters = ("connectors.own_formats.parquet_reader.FILE_BYTES_MAX", 1 + 3 + 3 + 10 + 7 + 3 * 5)
    yield Refusal("the file holds more than 39 characters of text.", _parquet_file(1, purpose="x"), whole, characters)


def _parquet_file(rows: int, *, without: str = "", **more: str) -> bytes:
    values: dict[str, object] = {
        "account_key": "1", "account_currency": "EUR", "currency": "EUR", "booking_date": date(2026, 1, 1),
        "amount": Decimal(1), "is_reversal": False, "is_return": False, "is_adjusting_entry": False, **more,
    }  # fmt: skip
    types = {name: DTYPES[kind] for name, (_, kind) in {**ACCOUNT, **BOOKING}.items() if name != without}
    stream = io.BytesIO()
    pl.DataFrame([{name: values.get(name) for name in types}] * rows, schema=types).write_parquet(stream)
    return stream.getvalue()
