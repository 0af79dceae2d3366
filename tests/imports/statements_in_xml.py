"""Bank statements for tests: camt.053 written from lines `day | amount | name | purpose | reference`."""

from decimal import Decimal

GIRO = "DE89370400440532013000"
SAVINGS = "DE02120300000000202051"


def camt(iban: str, table: str, *, opening: str | None = None, closing: str | None = None, pending: str = "") -> str:
    """One statement; balances on the first and last day of its bookings, pending rows in a table of their own."""
    rows = [_cells(line) for line in table.strip().splitlines()]
    waiting = [_cells(line) for line in pending.strip().splitlines()]
    first, last = rows[0][0], rows[-1][0]
    balances = (_balance("OPBD", opening, first) if opening else "") + (
        _balance("CLBD", closing, last) if closing else ""
    )
    entries = "".join(_entry(row, "BOOK") for row in rows) + "".join(_entry(row, "PDNG") for row in waiting)
    return (
        '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><BkToCstmrStmt><Stmt>'
        f"<Acct><Id><IBAN>{iban}</IBAN></Id><Ccy>EUR</Ccy></Acct>{balances}{entries}</Stmt></BkToCstmrStmt></Document>"
    )


def _cells(line: str) -> list[str]:
    return ([cell.strip() for cell in line.split("|")] + [""] * 5)[:5]


def _balance(code: str, amount: str, day: str) -> str:
    return (
        f'<Bal><Tp><CdOrPrtry><Cd>{code}</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">{amount}</Amt>'
        f"<CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>{day}</Dt></Dt></Bal>"
    )


def _entry(row: list[str], status: str) -> str:
    day, amount, name, purpose, reference = row
    value = Decimal(amount)
    side, party = ("CRDT", "Dbtr") if value > 0 else ("DBIT", "Cdtr")
    iban, _, name = name.rpartition(" @ ")
    account = f"<{party}Acct><Id><IBAN>{iban}</IBAN></Id></{party}Acct>" if iban else ""
    known = f"<AcctSvcrRef>{reference}</AcctSvcrRef>" if reference else ""
    return (
        f'<Ntry><Amt Ccy="EUR">{abs(value)}</Amt><CdtDbtInd>{side}</CdtDbtInd><Sts>{status}</Sts>'
        f"<BookgDt><Dt>{day}</Dt></BookgDt>{known}<NtryDtls><TxDtls><RltdPties><{party}><Nm>{name}</Nm></{party}>"
        f"{account}</RltdPties><RmtInf><Ustrd>{purpose}</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>"
    )
