"""Small statements to read: a camt message around entries, an MT940 block around bookings, and what comes out."""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

import pytest

from analytics.records import AccountRecord, Record, StatementRecord, TransactionRecord

IBAN = "DE89370400440532013000"
Read = Callable[[BinaryIO], Iterator[Record]]


@dataclass(frozen=True)
class Found:
    """What a reader yielded, by kind."""

    accounts: list[AccountRecord]
    transactions: list[TransactionRecord]
    statements: list[StatementRecord]

    @property
    def only(self) -> TransactionRecord:
        (transaction,) = self.transactions
        return transaction


def gathered(read: Read, content: str | bytes) -> Found:
    """Everything a reader finds in a file of this content."""
    data = content.encode() if isinstance(content, str) else content
    records = list(read(io.BytesIO(data)))
    return Found(
        [record for record in records if isinstance(record, AccountRecord)],
        [record for record in records if isinstance(record, TransactionRecord)],
        [record for record in records if isinstance(record, StatementRecord)],
    )


def camt_message(
    entries: str = "",
    *,
    version: str = "053.001.08",
    account: str = f"<Id><IBAN>{IBAN}</IBAN></Id><Ccy>EUR</Ccy>",
    header: str = "",
    balances: str = "",
    after: str = "",
) -> str:
    """A camt message with one statement."""
    message, name = {
        "052": ("BkToCstmrAcctRpt", "Rpt"),
        "053": ("BkToCstmrStmt", "Stmt"),
        "054": ("BkToCstmrDbtCdtNtfctn", "Ntfctn"),
    }[version[:3]]
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.{version}">'
        f"<{message}><GrpHdr><MsgId>M</MsgId></GrpHdr><{name}><Id>S</Id>{header}"
        f"<Acct>{account}</Acct>{balances}{entries}{after}</{name}></{message}></Document>"
    )


def camt_entry(
    amount: str = "12.34",
    mark: str = "DBIT",
    *,
    status: str = "<Cd>BOOK</Cd>",
    dates: str = "<BookgDt><Dt>2026-01-30</Dt></BookgDt><ValDt><Dt>2026-01-31</Dt></ValDt>",
    more: str = "",
    details: str = "",
    currency: str = "EUR",
) -> str:
    """One Ntry; `details` stand inside one TxDtls."""
    inner = f"<NtryDtls><TxDtls>{details}</TxDtls></NtryDtls>" if details else ""
    return (
        f'<Ntry><Amt Ccy="{currency}">{amount}</Amt><CdtDbtInd>{mark}</CdtDbtInd><Sts>{status}</Sts>{dates}'
        f"{more}{inner}</Ntry>"
    )


def camt_balance(kind: str, amount: str, day: str = "2026-01-31", *, mark: str = "CRDT", currency: str = "EUR") -> str:
    """One Bal; an empty `mark` leaves CdtDbtInd out."""
    indicator = f"<CdtDbtInd>{mark}</CdtDbtInd>" if mark else ""
    return (
        f'<Bal><Tp><CdOrPrtry><Cd>{kind}</Cd></CdOrPrtry></Tp><Amt Ccy="{currency}">{amount}</Amt>{indicator}'
        f"<Dt><Dt>{day}</Dt></Dt></Bal>"
    )


def mt940_block(
    bookings: str,
    *,
    account: str = "37040044/0532013000",
    opening: str = ":60F:C260101EUR100,00",
    closing: str = "",
    end: str = "-",
) -> str:
    """One :20: block with CRLF line ends."""
    lines = [":20:STARTUMS", f":25:{account}", ":28C:00001/001", opening, bookings.strip("\n"), closing, end]
    return "\r\n".join("\n".join(line for line in lines if line).splitlines()) + "\r\n"


@pytest.fixture(name="found")
def _found() -> Callable[[Read, str | bytes], Found]:
    return gathered


@pytest.fixture(name="message")
def _message() -> Callable[..., str]:
    return camt_message


@pytest.fixture(name="entry")
def _entry() -> Callable[..., str]:
    return camt_entry


@pytest.fixture(name="balance")
def _balance() -> Callable[..., str]:
    return camt_balance


@pytest.fixture(name="block")
def _block() -> Callable[..., str]:
    return mt940_block


def booking(details: str = "", *, line: str = ":61:2601300130D12,34NTRFNONREF") -> str:
    """A booking of MT940: its line, and its text where there is one."""
    return f"{line}\n:86:{details}" if details else line
