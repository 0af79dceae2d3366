"""Writer of OFX 2.2: bank accounts, then credit cards; booked transactions without pending ones.

Left out, because the format has no place for it: names of accounts, creditor and debtor ids, mandates, end-to-end ids,
purpose codes, bank transaction codes and GVC (replaced by the nearest TRNTYPE), the counterpart's bank name and,
without an IBAN, BIC, the bank's text, a separate merchant name, original amounts, reversal and return flags, the
opening balance. Longer than the specification allows, so that nothing is lost: IBAN in ACCTID, BIC in BANKID, MEMO. A
booking without an id from its bank gets one made of its content, because FITID is required.
"""

from collections.abc import Iterable
from datetime import date, datetime
from hashlib import blake2b
from tempfile import SpooledTemporaryFile
from typing import IO, BinaryIO

from analytics.records import AccountRecord, Record, TransactionRecord
from connectors.blocks import COPY_BYTES, MEMORY_BYTES, Block, blocks, tag

NAME_CHARACTERS_MAX = 32  # OFX 11.4.4.1: a longer name goes into EXTDNAME
TYPES = frozenset(
    {
        "CREDIT", "DEBIT", "INT", "DIV", "FEE", "SRVCHG", "DEP", "ATM", "POS", "XFER", "CHECK", "PAYMENT", "CASH",
        "DIRECTDEP", "DIRECTDEBIT", "REPEATPMT", "OTHER",
    }
)  # fmt: skip
FAMILIES = (  # parts of a bank transaction code, the most telling first
    ("-STDO", "REPEATPMT"),
    ("-SALA", "DIRECTDEP"),
    ("-CWDL", "ATM"),
    ("-CDPT", "DEP"),
    ("-INTR", "INT"),
    ("-CHRG", "FEE"),
    ("-DVCA", "DIV"),
    ("-RDDT-", "DIRECTDEBIT"),
    ("-IDDT-", "DIRECTDEBIT"),
    ("-CCRD-", "POS"),
    ("-MCRD-", "POS"),
    ("-ICDT-", "XFER"),
    ("-RCDT-", "XFER"),
    ("-IRCT-", "XFER"),
    ("-RRCT-", "XFER"),
)
KINDS = {"savings": "SAVINGS", "loan": "CREDITLINE"}
OK = "<STATUS><CODE>0</CODE><SEVERITY>INFO</SEVERITY></STATUS>"


def write(records: Iterable[Record], stream: BinaryIO, *, created: datetime, today: date) -> None:
    """Write the records as one OFX document without pending bookings; rows wait on disk until their period is known, so
    memory stays bounded.

    `created` is a time in UTC, `today` the day of accounts that state no other.
    """
    stream.write(
        '<?xml version="1.0" encoding="UTF-8" standalone="no"?>\n'
        '<?OFX OFXHEADER="200" VERSION="220" SECURITY="NONE" OLDFILEUID="NONE" NEWFILEUID="NONE"?>\n'
        f"<OFX>\n<SIGNONMSGSRSV1><SONRS>{OK}<DTSERVER>{created:%Y%m%d%H%M%S}</DTSERVER><LANGUAGE>ENG</LANGUAGE>"
        "</SONRS></SIGNONMSGSRSV1>\n".encode()
    )
    with SpooledTemporaryFile(MEMORY_BYTES) as cards:
        has_banks = False
        for block in blocks(records, _transaction):
            if block.account.kind == "credit_card":
                _statement(block, cards, today)
                continue
            if not has_banks:
                stream.write(b"<BANKMSGSRSV1>\n")
            has_banks = True
            _statement(block, stream, today)
        if has_banks:
            stream.write(b"</BANKMSGSRSV1>\n")
        if cards.tell():
            stream.write(b"<CREDITCARDMSGSRSV1>\n")
            cards.seek(0)
            while chunk := cards.read(COPY_BYTES):
                stream.write(chunk)
            stream.write(b"</CREDITCARDMSGSRSV1>\n")
    stream.write(b"</OFX>\n")


def _statement(block: Block, stream: IO[bytes], today: date) -> None:
    account, card = block.account, "CC" if block.account.kind == "credit_card" else ""
    number = tag("ACCTID", account.iban or account.stable_key.rpartition("/")[2])
    if card:
        source = f"<CCACCTFROM>{number}</CCACCTFROM>"
    else:
        bank = account.bic if account.iban else account.stable_key.rpartition("/")[0]
        kind = KINDS.get(account.kind or "", "CHECKING")
        source = f"<BANKACCTFROM>{tag('BANKID', bank)}{number}<ACCTTYPE>{kind}</ACCTTYPE></BANKACCTFROM>"
    closing_date = block.statement.closing_date or block.last or today
    stream.write(
        f"<{card}STMTTRNRS><TRNUID>{block.number}</TRNUID>{OK}<{card}STMTRS>{tag('CURDEF', account.currency)}"
        f"{source}\n<BANKTRANLIST>{tag('DTSTART', _day(block.first or closing_date))}"
        f"{tag('DTEND', _day(closing_date))}\n".encode()
    )
    block.copy_rows(stream)
    balances = block.balances()
    ledger = "" if balances is None else f"{tag('BALAMT', f'{balances[1]:f}')}{tag('DTASOF', _day(closing_date))}"
    stream.write(f"</BANKTRANLIST>\n{tag('LEDGERBAL', raw=ledger)}</{card}STMTRS></{card}STMTTRNRS>\n".encode())


def _transaction(account: AccountRecord, row: TransactionRecord) -> str:
    if row.status == "pending":
        return ""
    name = row.counterpart_name or ""
    other = tag("BANKID", row.counterpart_bic) + tag("ACCTID", row.counterpart_iban) + tag("ACCTTYPE", "CHECKING")
    foreign = tag("CURRATE", "1") + tag("CURSYM", row.currency)
    return (
        "<STMTTRN>"
        + tag("TRNTYPE", _type(row))
        + tag("DTPOSTED", _day(row.booking_date))
        + tag("DTAVAIL", _day(row.value_date) if row.value_date else None)
        + tag("TRNAMT", f"{row.amount:f}")
        + tag("FITID", row.provider_id or _made_id(row))
        + tag("SIC", row.mcc)
        + tag("NAME", name[:NAME_CHARACTERS_MAX].rstrip())
        + tag("EXTDNAME", name if len(name) > NAME_CHARACTERS_MAX else None)
        + tag("BANKACCTTO", raw=other if row.counterpart_iban else "")
        + tag("MEMO", row.purpose)
        + tag("CURRENCY", raw=foreign if row.currency != account.currency else "")
        + "</STMTTRN>\n"
    )


def _type(row: TransactionRecord) -> str:
    if row.swift_code in TYPES:
        return row.swift_code
    code = row.bank_transaction_code or ""
    kind = next((name for part, name in FAMILIES if part in f"{code}-"), None)
    return kind or ("DEBIT" if row.amount < 0 else "CREDIT")


def _made_id(row: TransactionRecord) -> str:
    said = (row.counterpart_iban, row.counterpart_name, row.purpose, row.mandate_reference)
    return "C" + blake2b("\x1f".join(text or "" for text in said).encode(), digest_size=8).hexdigest()


def _day(day: date) -> str:
    return f"{day:%Y%m%d}"
