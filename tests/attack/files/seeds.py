"""A small statement of every format, as banks and we write them: what is mutated."""

import io
import zipfile
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import BinaryIO

from connectors.camt import writer as camt
from connectors.classified_records import unclassified
from connectors.ofx import writer as ofx
from connectors.own_formats import beancount_writer
from connectors.own_formats import csv as own_csv
from storage.importing.records import AccountRecord, Record, StatementRecord, TransactionRecord

MADE = datetime(2026, 2, 1, tzinfo=UTC)
IBAN = "DE89370400440532013000"
RECORDS: list[Record] = [
    AccountRecord(stable_key=IBAN, iban=IBAN, currency="EUR", name="Giro", kind="checking", bic="COBADEFFXXX"),
    *(
        TransactionRecord(
            amount=Decimal(amount), currency="EUR", booking_date=date(2026, 1, day), value_date=date(2026, 1, day),
            references=(f"servicer:2026-{day}",), counterpart_name="Stadtwerke",
            counterpart_iban="DE02120300000000202051",
            creditor_id="DE98ZZZ09999999999", mandate_reference="M-1", end_to_end_id=f"E2E-{day}",
            purpose="Abschlag \u00fc",
            bank_transaction_code="PMNT-RDDT-ESDD", gvc="105", mcc="4900",
        )
        for day, amount in ((2, "-12.34"), (3, "100.00"), (4, "-0.01"))
    ),
    StatementRecord(opening=Decimal(0), opening_date=date(2026, 1, 1), closing=Decimal("87.65"),
                    closing_date=date(2026, 1, 31)),
]  # fmt: skip
MT940 = (
    ":20:STARTUMS\r\n:25:37040044/0532013000\r\n:28C:1/1\r\n:60F:C260101EUR100,00\r\n"
    ":61:2601300130D12,34NDDTNONREF//2026013012345\r\n:86:105?00FOLGELASTSCHRIFT?20EREF+E2E-1?21MREF+M-1\r\n"
    "?22SVWZ+Abschlag?30BYLADEM1001?31DE02120300000000202051?32Stadtwerke\r\n"
    ":61:2601310131RC1,00NTRFNONREF\r\n/OCMT/USD1,10/\r\n:86:/TRTP/SEPA/IBAN/NL91ABNA0417164300/NAME/J/REMI/Brood/EREF/E\r\n"
    ":62F:C260131EUR86,66\r\n-\r\n"
)
SPARKASSE = (
    '"Auftragskonto";"Buchungstag";"Valutadatum";"Buchungstext";"Verwendungszweck";"Beguenstigter/Zahlungspflichtiger";'
    '"Kontonummer";"BLZ";"Betrag";"Waehrung";"Info"\r\n'
    '"DE89370400440532013000";"30.01.26";"30.01.26";"LASTSCHRIFT";"EREF: 1 Abschlag";"Stadtwerke";'
    '"DE02120300000000202051";"BYLADEM1001";"-12,34";"EUR";"Umsatz gebucht"\r\n'
)
GENERIC = "Konto;Giro 123456\nSaldo am 31.01.2026;1.234,56 EUR\n\nDatum;Empf\u00e4nger;Zweck;Betrag;W\u00e4hrung\n" + (
    '30.01.2026;Laden;"Danke; sehr";-12,50;EUR\n31.01.2026;Bank;Zins;0,01;EUR\n'
)
BARE = (
    "2026-01-30,Shop,-12.50,100.00\n2026-01-31,Shop,-2.50,97.50\n"
    "2026-02-01,Pay,10.00,107.50\n2026-02-02,Shop,-1.00,106.50\n"
)
JSON_LINE = (
    '{"id": "1", "bookingDate": "2026-01-30", "valueDate": null, "amount": -12.34, "currency": "EUR",'
    '"counterpartName": "A",'
    '"counterpartIban": null, "counterpartBic": null, "counterpartBankName": null, "counterpartCreditorId": null,'
    '"counterpartDebitorId": null, "counterpartMandateReference": null, "purpose": "x", "bankTransactionCode": null,'
    '"sepaPurposeCode": null, "isAdjustingEntry": false, "bankAccount": {"iban": null, "accountName": "Giro",'
    '"bankConnection": {"bankName": "Bank"}}, "account": {"key": "1/2", "accountType": "checking", "currency": "EUR",'
    '"bic": null, "balance": 1.00, "balanceDate": "2026-01-31"}, "source": {"mcc": "5411"}}\n'
)


def seeds() -> Mapping[str, bytes]:
    """Each by its name."""
    found = {
        "mt940": MT940.encode("cp1252"),
        "csv-known": SPARKASSE.encode("cp1252"),
        "csv-words": GENERIC.encode("utf-8"),
        "csv-bare": BARE.encode(),
        "utf16": GENERIC.encode("utf-16"),
        "jsonl": JSON_LINE.encode(),
    }
    writers: Mapping[str, Callable[[BinaryIO], None]] = {
        "camt": lambda stream: camt.write(RECORDS, stream, created=MADE),
        "ofx": lambda stream: ofx.write(RECORDS, stream, created=MADE, today=MADE.date()),
        "csv-own": lambda stream: own_csv.write(unclassified(RECORDS), stream),
        "beancount": lambda stream: beancount_writer.write(unclassified(RECORDS), stream),
    }
    for name, write in writers.items():
        stream = io.BytesIO()
        write(stream)
        found[name] = stream.getvalue()
    container = io.BytesIO()
    with zipfile.ZipFile(container, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("1.xml", found["camt"])
        archive.writestr("2.sta", found["mt940"])
    return found | {"zip": container.getvalue()}
