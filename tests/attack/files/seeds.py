"""A small statement of every format, as banks and we write them: what is mutated."""

import io
import zipfile
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

import polars as pl

from analytics.records import AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.camt import writer as camt
from connectors.classified_records import without_classes
from connectors.ofx import writer as ofx
from connectors.own_formats import beancount_writer, parquet_writer
from connectors.own_formats import csv as own_csv
from storage.transactions import EVERYTHING

MADE = datetime(2026, 2, 1, tzinfo=UTC)
IBAN = "DE89370400440532013000"
ACCOUNT = AccountRecord(stable_key=IBAN, iban=IBAN, currency="EUR", name="Giro", kind="checking", bic="COBADEFFXXX")
SAID = StatementRecord(
    opening=Decimal(0), opening_date=date(2026, 1, 1), closing=Decimal("87.65"), closing_date=date(2026, 1, 31)
)
RECORDS: list[Record] = [
    ACCOUNT,
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
    SAID,
]  # fmt: skip
MT940 = (
    ":20:STARTUMS\r\n:25:37040044/0532013000\r\n:28C:1/1\r\n:60F:C260101EUR100,00\r\n"
    ":61:2601300130D12,34NDDTNONREF//2026013012345\r\n:86:105?00FOLGELASTSCHRIFT?20EREF+E2E-1?21MREF+M-1\r\n"
    "?22SVWZ+Abschlag?30BYLADEM1001?31DE02120300000000202051?32Stadtwerke\r\n"
    ":61:2601310131RC1,00NTRFNONREF\r\n/OCMT/USD1,10/\r\n:86:/TRTP/SEPA/IBAN/NL91ABNA0417164300/NAME/J/REMI/Brood/EREF/E\r\n"
    ":62F:C260131EUR86,66\r\n-\r\n"
)
MT942 = (
    ":20:STARTDISP\r\n:25:37040044/0532013000\r\n:28C:2/1\r\n:34F:EURD0,01\r\n:13D:2601311200+0100\r\n"
    ":61:2601310131D0,50N152NONREF\r\n:86:152?00DAUERAUFTRAG?20SVWZ+Miete?32Haus\r\n:90D:1EUR0,50\r\n:90C:0EUR0,\r\n-\r\n"
)
CAMT_BATCH = """<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.052.001.02"><BkToCstmrAcctRpt><GrpHdr><MsgId>1</MsgId>
<CreDtTm>2026-02-01T00:00:00</CreDtTm></GrpHdr><Rpt><Id>1</Id><CreDtTm>2026-02-01T00:00:00</CreDtTm>
<Acct><Id><IBAN>DE89370400440532013000</IBAN></Id><Ccy>EUR</Ccy></Acct>
<Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">10.00</Amt><CdtDbtInd>CRDT</CdtDbtInd>
<Dt><Dt>2026-01-31</Dt></Dt></Bal>
<Ntry><Amt Ccy="EUR">3.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>BOOK</Sts><BookgDt><Dt>2026-01-30</Dt></BookgDt>
<AcctSvcrRef>B1</AcctSvcrRef><BkTxCd><Prtry><Cd>NDDT+105+9999</Cd><Issr>DK</Issr></Prtry></BkTxCd>
<NtryDtls><Btch><NbOfTxs>2</NbOfTxs></Btch>
<TxDtls><Refs><TxId>1</TxId></Refs><Amt Ccy="EUR">1.00</Amt><CdtDbtInd>DBIT</CdtDbtInd>
<RltdPties><Cdtr><Pty><Nm>A &amp; B</Nm></Pty></Cdtr></RltdPties>
<RmtInf><Ustrd>one</Ustrd><Ustrd>two</Ustrd></RmtInf></TxDtls>
<TxDtls><Refs><TxId>2</TxId></Refs><Amt Ccy="EUR">2.00</Amt><CdtDbtInd>DBIT</CdtDbtInd>
<AmtDtls><InstdAmt><Amt Ccy="USD">2.20</Amt></InstdAmt></AmtDtls><RmtInf><Ustrd>three</Ustrd></RmtInf></TxDtls>
</NtryDtls></Ntry>
<Ntry><Amt Ccy="EUR">4.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><RvslInd>true</RvslInd><Sts><Cd>PDNG</Cd></Sts>
<ValDt><DtTm>2026-02-01T10:00:00+01:00</DtTm></ValDt></Ntry></Rpt></BkToCstmrAcctRpt></Document>
"""
OFX_TAGS = """OFXHEADER:100
DATA:OFXSGML
VERSION:102
SECURITY:NONE
ENCODING:USASCII
CHARSET:1252
COMPRESSION:NONE

<OFX><SIGNONMSGSRSV1><SONRS><STATUS><CODE>0<SEVERITY>INFO</STATUS><DTSERVER>20260201<LANGUAGE>ENG</SONRS>
</SIGNONMSGSRSV1><CREDITCARDMSGSRSV1><CCSTMTTRNRS><TRNUID>1<CCSTMTRS><CURDEF>USD<CCACCTFROM><ACCTID>4111
</CCACCTFROM><BANKTRANLIST><DTSTART>20260101<DTEND>20260131
<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>20260130120000.000[-5:EST]<TRNAMT>-12.50<FITID>1<NAME>AT&amp;T <MEMO>Phone</STMTTRN>
<STMTTRN><TRNTYPE>CREDIT<DTPOSTED>20260131<TRNAMT>1,5<FITID>2<NAME>Refund
</BANKTRANLIST><LEDGERBAL><BALAMT>-11.00<DTASOF>20260131</LEDGERBAL></CCSTMTRS></CCSTMTTRNRS></CREDITCARDMSGSRSV1>
</OFX>
"""
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


def bookings() -> pl.DataFrame:
    """Two of them with every column that an export has, most of them empty."""
    known = {"currency": "EUR", "booking_date": date(2026, 1, 2), "amount": Decimal("-12.34"), "purpose": "Abschlag"}
    row = {name: False if kind == pl.Boolean else known.get(name) for name, kind in EVERYTHING.items()}
    return pl.DataFrame([row | {"id": f"txn_{number:032x}"} for number in range(2)], schema=dict(EVERYTHING))


def seeds(samples: Path | None = None) -> Mapping[str, bytes]:
    """Each by its name; those of a folder as well."""
    found = {
        "mt940": MT940.encode("cp1252"),
        "mt942": MT942.encode("cp1252"),
        "camt-batch": CAMT_BATCH.encode(),
        "ofx-tags": OFX_TAGS.encode(),
        "csv-known": SPARKASSE.encode("cp1252"),
        "csv-words": GENERIC.encode("utf-8"),
        "csv-bare": BARE.encode(),
        "utf16": GENERIC.encode("utf-16"),
        "jsonl": JSON_LINE.encode(),
    }
    writers: Mapping[str, Callable[[BinaryIO], object]] = {
        "camt": lambda stream: camt.write(RECORDS, stream, created=MADE),
        "ofx": lambda stream: ofx.write(RECORDS, stream, created=MADE, today=MADE.date()),
        "csv-own": lambda stream: own_csv.write(without_classes(RECORDS), stream),
        "beancount": lambda stream: beancount_writer.write(without_classes(RECORDS), stream),
        "parquet": lambda stream: parquet_writer.write([(ACCOUNT, SAID, [bookings()])], stream, schema=EVERYTHING),
    }
    for name, write in writers.items():
        stream = io.BytesIO()
        write(stream)
        found[name] = stream.getvalue()
    stream = io.BytesIO()  # what is mutated then arrives at the columns, not at what unpacks them
    pl.read_parquet(found["parquet"]).write_parquet(stream, compression="uncompressed")
    found["parquet-unpacked"] = stream.getvalue()
    container = io.BytesIO()
    with zipfile.ZipFile(container, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("1.xml", found["camt"])
        archive.writestr("2.sta", found["mt940"])
    paths = sorted(path for path in samples.rglob("*.*") if path.is_file()) if samples else []
    return found | {"zip": container.getvalue()} | {str(path): path.read_bytes() for path in paths}
