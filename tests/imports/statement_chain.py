"""Makes a chain of daily statements with the traits of real ones: overlaps, repeated references, equal rows, days
without statement, two statements of a day, intraday reports beside the day's statement, returns, batches, a ZIP."""

import random
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from io import BytesIO

IBAN = "DE89370400440532013000"
FIRST_DAY = date(2026, 1, 1)
SHOPS = ("Markt Nord", "Bäckerei Süd", "Tankstelle West", "Stadtwerke", "Verlag Ost", "Café Mitte")


@dataclass(frozen=True, slots=True)
class Entry:
    """A booking of the invented bank."""

    day: date
    amount: Decimal
    name: str
    text: str
    reference: str | None
    end_to_end: str


@dataclass(frozen=True, slots=True)
class File:
    """A statement file of the chain."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Chain:
    """The files in the order in which the bank issues them, and what an import of all of them must give."""

    files: Sequence[File]
    entries: Sequence[Entry]
    closing: Decimal


def chain(days: int = 155, seed: int = 1) -> Chain:
    """Statements of so many days in a row."""
    chance = random.Random(seed)
    opening = balance = Decimal("1234.56")
    entries: list[Entry] = []
    files: list[File] = []
    yesterday: list[Entry] = []
    for number in range(days):
        day = FIRST_DAY + timedelta(days=number)
        of_day = list(_of_day(day, number, chance))
        entries += of_day
        if number % 9 == 4 and len(of_day) > 1:  # two statements of one day
            half = len(of_day) // 2
            middle = balance + _sum(of_day[:half])
            files.append(_file(f"{number:03}a.xml", number * 2, day, balance, of_day[:half]))
            files.append(_file(f"{number:03}b.xml", number * 2 + 1, day, middle, of_day[half:]))
        elif number % 11 == 5:  # the intraday report and the statement, together in one container
            part = of_day[: max(1, len(of_day) // 2)]
            report = _camt(9000 + number, day, balance, part, message="052", closing_code="ITBD")
            statement = _camt(number * 2 + 1, day, balance, of_day)
            files.append(File(f"{number:03}.zip", _zip(report, statement)))
        elif number % 7 == 6:  # a file that begins with yesterday once more
            files.append(_file(f"{number:03}.xml", number * 2, day, balance - _sum(yesterday), [*yesterday, *of_day]))
        else:
            files.append(_file(f"{number:03}.xml", number * 2, day, balance, of_day))
        balance += _sum(of_day)
        yesterday = of_day
    assert balance == opening + _sum(entries)
    return Chain(files, entries, balance)


def _of_day(day: date, number: int, chance: random.Random) -> Iterator[Entry]:
    if number % 13 == 12:
        return  # a day without a booking, its statement is empty
    for place in range(chance.randint(1, 9)):
        name = chance.choice(SHOPS)
        amount = Decimal(chance.randint(-9000, 4000)) / 100
        has_reference = number % 3 != 0  # every third day the bank gives none
        reference = f"R{place}" if number % 5 == 1 else f"2026{number:04}{place:04}"  # or counts anew every day
        entry = Entry(day, amount, name, f"Einkauf {place}", reference if has_reference else None, f"E2E-{place % 2}")
        yield entry
        if not has_reference and place % 4 == 1:
            yield entry  # the same purchase twice on one day


def _sum(entries: Sequence[Entry]) -> Decimal:
    return sum((entry.amount for entry in entries), Decimal(0))


def _file(name: str, number: int, day: date, opening: Decimal, entries: Sequence[Entry]) -> File:
    return File(name, _camt(number, day, opening, entries))


def _camt(
    number: int,
    day: date,
    opening: Decimal,
    entries: Sequence[Entry],
    *,
    message: str = "053",
    closing_code: str = "CLBD",
) -> bytes:
    outer, inner = {"053": ("BkToCstmrStmt", "Stmt"), "052": ("BkToCstmrAcctRpt", "Rpt")}[message]
    first = min((entry.day for entry in entries), default=day)
    closing = opening + _sum(entries)
    available = _balance("CLAV", closing + 5000, day)  # with the overdraft: never the balance
    body = "".join(map(_entry, entries))
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.{message}.001.08">'
        f"<{outer}><GrpHdr><MsgId>M{number}</MsgId></GrpHdr><{inner}><Id>S{number}</Id>"
        f"<ElctrncSeqNb>{number}</ElctrncSeqNb><Acct><Id><IBAN>{IBAN}</IBAN></Id><Ccy>EUR</Ccy></Acct>"
        f"{_balance('OPBD', opening, first)}{available}{_balance(closing_code, closing, day)}{body}"
        f"</{inner}></{outer}></Document>"
    ).encode()


def _balance(code: str, amount: Decimal, day: date) -> str:
    return (
        f'<Bal><Tp><CdOrPrtry><Cd>{code}</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">{abs(amount)}</Amt>'
        f"<CdtDbtInd>{_mark(amount)}</CdtDbtInd><Dt><Dt>{day}</Dt></Dt></Bal>"
    )


def _entry(entry: Entry) -> str:
    reference = f"<AcctSvcrRef>{entry.reference}</AcctSvcrRef>" if entry.reference else ""
    party = "Cdtr" if entry.amount < 0 else "Dbtr"
    return (
        f'<Ntry><Amt Ccy="EUR">{abs(entry.amount)}</Amt><CdtDbtInd>{_mark(entry.amount)}</CdtDbtInd>'
        f"<Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>{entry.day}</Dt></BookgDt><ValDt><Dt>{entry.day}</Dt></ValDt>{reference}"
        f"<BkTxCd/><NtryDtls><TxDtls><Refs><EndToEndId>{entry.end_to_end}</EndToEndId></Refs><RltdPties><{party}><Pty>"
        f"<Nm>{entry.name}</Nm></Pty></{party}></RltdPties><RmtInf><Ustrd>{entry.text}</Ustrd></RmtInf></TxDtls>"
        "</NtryDtls></Ntry>"
    )


def _mark(amount: Decimal) -> str:
    return "DBIT" if amount < 0 else "CRDT"


def _zip(*contents: bytes) -> bytes:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as container:
        for number, content in enumerate(contents):
            container.writestr(f"{number}.xml", content)
    return stream.getvalue()
