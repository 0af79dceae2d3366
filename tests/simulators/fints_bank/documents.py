"""Bookings as a bank sends them inside a FinTS message: camt.052, or MT940."""

from datetime import date
from decimal import Decimal
from xml.sax.saxutils import escape

from tests.simulators.fints_bank.accounts import BANK_CODE, Account, Booking

CAMT = "urn:iso:std:iso:20022:tech:xsd:camt.052.001.08"
MT940_MARK = {True: "C", False: "D"}


def _mt940_amount(amount: Decimal) -> str:
    return f"{amount:.2f}".replace(".", ",")


def camt(account: Account, rows: list[Booking], today: date) -> bytes:
    entries = "".join(
        f'<Ntry><Amt Ccy="{account.currency}">{abs(each.amount)}</Amt>'
        f"<CdtDbtInd>{'DBIT' if each.amount < 0 else 'CRDT'}</CdtDbtInd>"
        f"<Sts><Cd>{'PDNG' if each.is_pending else 'BOOK'}</Cd></Sts>"
        f"<BookgDt><Dt>{each.day}</Dt></BookgDt><ValDt><Dt>{each.day}</Dt></ValDt>"
        + (f"<AcctSvcrRef>{each.reference}</AcctSvcrRef>" if each.reference else "")
        + "<BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>ICDT</Cd><SubFmlyCd>ESCT</SubFmlyCd></Fmly></Domn></BkTxCd>"
        f"<NtryDtls><TxDtls><RltdPties><{party}><Pty><Nm>{escape(each.name)}</Nm></Pty></{party}></RltdPties>"
        f"<RmtInf><Ustrd>{escape(each.purpose)}</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>"
        for each in rows
        for party in ("Cdtr" if each.amount < 0 else "Dbtr",)
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><Document xmlns="{CAMT}"><BkToCstmrAcctRpt><GrpHdr><MsgId>1</MsgId>'
        f"<CreDtTm>{today}T06:00:00</CreDtTm></GrpHdr><Rpt><Id>1</Id><CreDtTm>{today}T06:00:00</CreDtTm>"
        f"<Acct><Id><IBAN>{account.iban}</IBAN></Id><Ccy>{account.currency}</Ccy></Acct>{entries}"
        "</Rpt></BkToCstmrAcctRpt></Document>"
    ).encode()


def mt940(account: Account, rows: list[Booking]) -> bytes:
    """One statement; its opening balance is what its bookings leave of the account's balance."""
    closing = account.balance
    opening = closing - sum((each.amount for each in rows), Decimal(0))
    first, last = min(each.day for each in rows), max(each.day for each in rows)
    lines = [":20:STARTUMS", f":25:{BANK_CODE}/{account.number}", ":28C:0"]
    lines.append(f":60F:{MT940_MARK[opening >= 0]}{first:%y%m%d}{account.currency}{_mt940_amount(abs(opening))}")
    for each in rows:
        mark = MT940_MARK[each.amount >= 0]
        lines.append(f":61:{each.day:%y%m%d%m%d}{mark}{_mt940_amount(abs(each.amount))}NTRFNONREF")
        lines.append(f":86:166?00UEBERWEISUNG?20{each.purpose}?32{each.name}")
    lines.append(f":62F:{MT940_MARK[closing >= 0]}{last:%y%m%d}{account.currency}{_mt940_amount(abs(closing))}")
    return "\r\n".join(("", *lines, "-", "")).encode("latin-1")
