"""Whatever a bank could write in one of the common ways is read back as it was meant."""

import csv
import io
from datetime import date, timedelta
from decimal import Decimal
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.records import StatementRecord, TransactionRecord
from connectors.bank_csv import reader as csv_statements
from connectors.ofx import reader as ofx
from tests.conftest import examples

TEXTS = st.text(alphabet="abcXYZäß 0123456789,;\"'|\n", min_size=1, max_size=30).filter(lambda text: bool(text.split()))
CENTS = st.integers(min_value=-10_000_000, max_value=10_000_000).filter(bool)


def grouped(cents: int, mark: str) -> str:
    figure = f"{Decimal(cents) / 100:,.2f}"
    return figure if mark == "." else figure.translate(str.maketrans(",.", ".,"))


@pytest.mark.requirement("readers.csv.generic")
@settings(max_examples=examples(80))
@given(
    rows=st.lists(st.tuples(CENTS, TEXTS), min_size=1, max_size=12),
    opening=st.integers(min_value=-100_000, max_value=100_000),
    delimiter=st.sampled_from([";", ",", "\t", "|"]),
    mark=st.sampled_from([",", "."]),
    layout=st.sampled_from(["%d.%m.%Y", "%Y-%m-%d", "%d.%m.%y", "%Y/%m/%d"]),
    is_newest_first=st.booleans(),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "cp1252", "utf-16"]),
)
def test_a_table_with_a_running_balance_is_read_back(
    rows: list[tuple[int, str]],
    opening: int,
    delimiter: str,
    mark: str,
    layout: str,
    is_newest_first: bool,
    encoding: str,
) -> None:
    balances = list(accumulate((cents for cents, _ in rows), initial=opening))[1:]
    days = [date(2026, 1, 5) + timedelta(days=index) for index in range(len(rows))]
    lines = [
        [day.strftime(layout), text, grouped(cents, mark), grouped(balance, mark)]
        for day, (cents, text), balance in zip(days, rows, balances, strict=True)
    ]
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerow(["Buchungstag", "Verwendungszweck", "Betrag", "Saldo"])
    writer.writerows(reversed(lines) if is_newest_first else lines)
    *found, statement = csv_statements.read(io.BytesIO(out.getvalue().encode(encoding)))
    bookings = [record for record in found if isinstance(record, TransactionRecord)]
    bookings = bookings[::-1] if is_newest_first else bookings
    assert [booking.booking_date for booking in bookings] == days
    assert [booking.amount * 100 for booking in bookings] == [cents for cents, _ in rows]
    assert [booking.purpose for booking in bookings] == [" ".join(text.split()) for _, text in rows]
    assert statement == StatementRecord(
        opening=Decimal(opening) / 100,
        opening_date=days[0],
        closing=Decimal(balances[-1]) / 100,
        closing_date=days[-1],
        is_authoritative=True,
    )


@pytest.mark.requirement("readers.ofx")
@settings(max_examples=examples(60))
@given(rows=st.lists(st.tuples(CENTS, TEXTS, st.booleans()), max_size=12), is_xml=st.booleans())
def test_an_ofx_statement_is_read_back(rows: list[tuple[int, str, bool]], is_xml: bool) -> None:
    def tag(name: str, value: str) -> str:
        escaped = value.replace("&", "&amp;").replace("<", "&lt;")
        return f"<{name}>{escaped}</{name}>" if is_xml else f"<{name}>{escaped}\n"

    bookings = "".join(
        f"<STMTTRN>{tag('TRNTYPE', 'OTHER')}{tag('DTPOSTED', '20260105')}"
        f"{tag('TRNAMT', str(Decimal(cents) / 100).replace('.', ',' if has_comma else '.'))}"
        f"{tag('FITID', str(index))}{tag('MEMO', text)}</STMTTRN>"
        for index, (cents, text, has_comma) in enumerate(rows)
    )
    file = (
        f"<OFX><STMTTRNRS><STMTRS>{tag('CURDEF', 'EUR')}<BANKACCTFROM>{tag('BANKID', '1')}{tag('ACCTID', '2')}"
        f"</BANKACCTFROM><BANKTRANLIST>{bookings}</BANKTRANLIST></STMTRS></STMTTRNRS></OFX>"
    )
    found = [record for record in ofx.read(io.BytesIO(file.encode())) if isinstance(record, TransactionRecord)]
    assert [record.amount * 100 for record in found] == [cents for cents, _, _ in rows]
    assert [record.purpose for record in found] == [" ".join(text.split()) for _, text, _ in rows]
