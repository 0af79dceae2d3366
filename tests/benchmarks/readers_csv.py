"""Measures the CSV and OFX readers: rows per second and memory for growing generated files.

python tests/benchmarks/readers_csv.py 100000
"""

import argparse
import io
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # runs from a checkout, installed or not

from connectors.bank_csv import reader as csv_statements
from connectors.ofx import reader as ofx

SPARKASSE = (
    '"Auftragskonto";"Buchungstag";"Valutadatum";"Buchungstext";"Verwendungszweck";"Glaeubiger ID";"Mandatsreferenz";'
    '"Kundenreferenz (End-to-End)";"Sammlerreferenz";"Lastschrift Ursprungsbetrag";"Auslagenersatz Ruecklastschrift";'
    '"Beguenstigter/Zahlungspflichtiger";"Kontonummer/IBAN";"BIC (SWIFT-Code)";"Betrag";"Waehrung";"Info"\n'
)
ROW = (
    '"DE02120300000000202051";"{day:02}.{month:02}.26";"{day:02}.{month:02}.26";"FOLGELASTSCHRIFT";"Abschlag Süd {i}";'
    '"DE98ZZZ09999999999";"M-{i}";"E2E-{i}";"";"";"";"Stadtwerke {i}";"DE02120300000000202051";"BYLADEM1001";"-{i},25";'
    '"EUR";"Umsatz gebucht"\n'
)
BOOKING = (
    "<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>2026{month:02}{day:02}<TRNAMT>-{i}.25<FITID>{i}<NAME>Shop {i}<MEMO>Memo {i}"
    "</STMTTRN>\n"
)


def sparkasse(rows: int) -> bytes:
    return (SPARKASSE + "".join(ROW.format(i=i, day=i % 28 + 1, month=i % 12 + 1) for i in range(rows))).encode(
        "cp1252"
    )


def words(rows: int) -> bytes:
    lines = (f"{i % 28 + 1:02}.01.2026;Laden {i};-{i},10\n" for i in range(rows))
    return ("Datum;Text;Betrag\n" + "".join(lines)).encode()


def statement(rows: int) -> bytes:
    bookings = "".join(BOOKING.format(i=i, day=i % 28 + 1, month=i % 12 + 1) for i in range(rows))
    return (
        "OFXHEADER:100\n\n<OFX><STMTTRNRS><STMTRS><CURDEF>EUR<BANKACCTFROM><BANKID>1<ACCTID>2</BANKACCTFROM>"
        f"<BANKTRANLIST>{bookings}</BANKTRANLIST></STMTRS></STMTTRNRS></OFX>"
    ).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int)
    arguments = parser.parse_args()
    for name, render, reader in (
        ("csv by profile", sparkasse, csv_statements.read),
        ("csv by words", words, csv_statements.read),
        ("ofx", statement, ofx.read),
    ):
        for rows in (arguments.rows // 4, arguments.rows):
            file = render(rows)
            began = time.perf_counter()
            found = sum(type(record).__name__ == "TransactionRecord" for record in reader(io.BytesIO(file)))
            seconds = time.perf_counter() - began
            assert found == rows, found
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            figures = f"{seconds:.2f} s, {rows / seconds:,.0f} rows/s, {peak:.0f} MB in all"
            print(f"{name} {rows} rows {len(file) / 1e6:.0f} MB: {figures}")


if __name__ == "__main__":
    main()
