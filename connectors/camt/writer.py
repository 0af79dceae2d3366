"""Writer of camt.053.001.08: one Stmt per account, one Ntry with one TxDtls per booking, valid against the schema.

Left out, because the format has no place for it: a merchant category code that is not four digits, a SWIFT code without
a GVC, weak references beyond one of each kind, whether the pending rows are complete. Cut: names at 140 characters, an
account name at 70, keys at 35, the bank's text at 500. A balance that the source does not state is marked as such,
because the schema requires one.
"""

from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import BinaryIO
from xml.sax.saxutils import escape

from analytics.records import AccountRecord, Record, TransactionRecord
from connectors.blocks import Block, blocks, tag

NAMESPACE = "urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"
NAME_CHARACTERS_MAX = 140  # Max140Text: names, and each line of a remittance text
ACCOUNT_NAME_CHARACTERS_MAX = 70
KEY_CHARACTERS_MAX = 35  # Max35Text
NUMBER_CHARACTERS_MAX = 34  # an account number that is no IBAN
NOTE_CHARACTERS_MAX = 500
KINDS = {"checking": "CACC", "savings": "SVGS", "credit_card": "CARD", "loan": "LOAN"}
UNSTATED = "NOTPROVIDED"


def write(records: Iterable[Record], stream: BinaryIO, *, created: datetime) -> None:
    """Write the records as one camt.053 message; rows wait on disk until the balances are known, so memory stays
    bounded."""
    made = created.isoformat(timespec="seconds")
    stream.write(
        f'<?xml version="1.0" encoding="UTF-8"?>\n<Document xmlns="{NAMESPACE}">\n<BkToCstmrStmt>\n<GrpHdr>'
        f"<MsgId>STATEMENTS-{created:%Y%m%d%H%M%S}</MsgId><CreDtTm>{made}</CreDtTm></GrpHdr>\n".encode()
    )
    for block in blocks(records, _entry):
        stream.write(_head(block, made).encode())
        block.copy_rows(stream)
        stream.write(b"</Stmt>\n")
    stream.write(b"</BkToCstmrStmt>\n</Document>\n")


def _head(block: Block, made: str) -> str:
    account, statement = block.account, block.statement
    key = account.stable_key[:NUMBER_CHARACTERS_MAX]
    number = tag("IBAN", account.iban) if account.iban else tag("Othr", raw=tag("Id", key))
    kind = KINDS.get(account.kind or "")
    agent = tag("BICFI", account.bic) + tag("Nm", account.bank_name, NAME_CHARACTERS_MAX)
    sequence = statement.sequence if (statement.sequence or "").isascii() else None
    return "".join(
        (
            "<Stmt>",
            tag("Id", f"STATEMENT-{block.number}"),
            tag("ElctrncSeqNb", sequence if sequence and sequence.isdigit() else None),
            tag("CreDtTm", made),
            tag(
                "Acct",
                raw=tag("Id", raw=number)
                + (tag("Tp", raw=tag("Cd", kind)) if kind else "")
                + tag("Ccy", account.currency)
                + tag("Nm", account.name, ACCOUNT_NAME_CHARACTERS_MAX)
                + tag("Svcr", raw=tag("FinInstnId", raw=agent)),
            ),
            _balances(block, made),
            "\n",
        )
    )


def _balances(block: Block, made: str) -> str:
    balances = block.balances()
    if balances is None:
        return _balance(tag("Prtry", UNSTATED), Decimal(0), block.account.currency, made[:10])
    (opening, closing), (opened, closed) = balances, block.days()
    return _balance(tag("Cd", "OPBD"), opening, block.account.currency, _day_text(opened, made)) + _balance(
        tag("Cd", "CLBD"), closing, block.account.currency, _day_text(closed, made), block.statement.credit_line
    )


def _balance(kind: str, amount: Decimal, currency: str, day: str, credit_line: Decimal | None = None) -> str:
    granted = tag("Amt", f"{credit_line:f}", attributes=f' Ccy="{escape(currency)}"') if credit_line is not None else ""
    return tag(
        "Bal",
        raw=tag("Tp", raw=tag("CdOrPrtry", raw=kind))
        + (tag("CdtLine", raw=tag("Incl", "false") + granted) if granted else "")
        + _amount(amount, currency)
        + tag("Dt", raw=tag("Dt", day)),
    )


def _entry(account: AccountRecord, row: TransactionRecord) -> str:
    """The XML element (Ntry) of one booking, with a line end; the account owner is the debtor of an outgoing payment,
    the roles are swapped in a return."""
    references = {kind: key for kind, _, key in (text.partition(":") for text in reversed(row.references))}
    return (
        tag(
            "Ntry",
            raw="".join(
                (
                    tag("NtryRef", references.get("ntryref"), KEY_CHARACTERS_MAX),
                    _amount(row.amount, row.currency),
                    tag("RvslInd", "true" if row.is_reversal else None),
                    tag("Sts", raw=tag("Cd", "PDNG" if row.status == "pending" else "BOOK")),
                    tag("BookgDt", raw=tag("Dt", row.booking_date.isoformat())),
                    tag("ValDt", raw=tag("Dt", row.value_date.isoformat() if row.value_date else None)),
                    tag("AcctSvcrRef", _servicer_key(row.provider_id or references.get("servicer"))),
                    _bank_transaction_code(row) or tag("BkTxCd", raw=tag("Prtry", raw=tag("Cd", UNSTATED))),
                    tag("NtryDtls", raw=tag("TxDtls", raw=_details(account, row, references.get("txid")))),
                    tag("AddtlNtryInf", row.bank_text, NOTE_CHARACTERS_MAX),
                )
            ),
        )
        + "\n"
    )


def _details(account: AccountRecord, row: TransactionRecord, txid: str | None) -> str:
    return "".join(
        (
            tag(
                "Refs",
                raw=tag("EndToEndId", row.end_to_end_id, KEY_CHARACTERS_MAX)
                + tag("TxId", txid, KEY_CHARACTERS_MAX)
                + tag("MndtId", row.mandate_reference, KEY_CHARACTERS_MAX),
            ),
            _original(row),
            _parties(account, row),
            tag("Purp", raw=tag("Cd", row.purpose_code)),
            tag("RmtInf", raw="".join(tag("Ustrd", line) for line in _lines(row.purpose or ""))),
            tag("RtrInf", raw=tag("Rsn", raw=tag("Prtry", "RETURN"))) if row.is_return else "",
            _card(row),
        )
    )


def _original(row: TransactionRecord) -> str:
    if row.original_amount is None or row.original_currency is None:
        return ""
    amount = tag("Amt", f"{abs(row.original_amount):f}", attributes=f' Ccy="{escape(row.original_currency)}"')
    return tag("AmtDtls", raw=tag("InstdAmt", raw=amount))


def _parties(account: AccountRecord, row: TransactionRecord) -> str:
    creditor_is_other = (row.amount < 0) != row.is_return
    other, own = ("Cdtr", "Dbtr") if creditor_is_other else ("Dbtr", "Cdtr")
    key = row.creditor_id if creditor_is_other else row.debitor_id
    scheme = tag("SchmeNm", raw=tag("Prtry", "SEPA")) if creditor_is_other else ""
    identification = tag("Id", raw=tag("PrvtId", raw=tag("Othr", raw=tag("Id", key, KEY_CHARACTERS_MAX) + scheme)))
    name = tag("Nm", row.counterpart_name, NAME_CHARACTERS_MAX)
    written = {
        other: tag(other, raw=tag("Pty", raw=name + (identification if key else ""))),
        f"{other}Acct": tag(f"{other}Acct", raw=tag("Id", raw=tag("IBAN", row.counterpart_iban))),
        f"{own}Acct": tag(f"{own}Acct", raw=tag("Id", raw=tag("IBAN", account.iban))),
    }
    parties = "".join(written.get(name, "") for name in ("Dbtr", "DbtrAcct", "Cdtr", "CdtrAcct"))
    agent = tag("BICFI", row.counterpart_bic) + tag("Nm", row.counterpart_bank_name, NAME_CHARACTERS_MAX)
    return tag("RltdPties", raw=parties) + tag("RltdAgts", raw=tag(f"{other}Agt", raw=tag("FinInstnId", raw=agent)))


def _bank_transaction_code(row: TransactionRecord) -> str:
    domain = ""
    if row.bank_transaction_code and len(parts := row.bank_transaction_code.split("-")) == 3:
        family = tag("Cd", parts[1]) + tag("SubFmlyCd", parts[2])
        domain = tag("Domn", raw=tag("Cd", parts[0]) + tag("Fmly", raw=family))
    proprietary = ""
    if row.gvc:
        code = f"{row.swift_code}+{row.gvc}" if row.swift_code else row.gvc
        proprietary = tag("Prtry", raw=tag("Cd", code) + tag("Issr", "DK"))
    return tag("BkTxCd", raw=domain + proprietary)


def _card(row: TransactionRecord) -> str:
    """The card transaction as XML (CardTx) with the merchant's name, cut at 35 characters, and the merchant category
    code (MCC, ISO 18245), as far as they are known; empty text if neither is. The MCC goes into TxCtgy, "category of
    the transaction", which is the schema's place for it."""
    merchant = row.merchant_name[:KEY_CHARACTERS_MAX] if row.merchant_name else None
    point = tag("POI", raw=tag("Id", raw=tag("Id", UNSTATED) + tag("ShrtNm", merchant))) if merchant else ""
    has_category = row.mcc is not None and len(row.mcc) == 4
    category = tag("Tx", raw=tag("Indv", raw=tag("TxCtgy", row.mcc))) if has_category else ""
    return tag("CardTx", raw=point + category)


def _amount(amount: Decimal, currency: str) -> str:
    sign = "DBIT" if amount < 0 else "CRDT"
    return tag("Amt", f"{abs(amount):f}", attributes=f' Ccy="{escape(currency)}"') + tag("CdtDbtInd", sign)


def _servicer_key(key: str | None) -> str | None:
    """The reference of the bank, cut at 35 characters. Our own ids are one character too long for the format and lose
    their underscore; the import core also knows them without it."""
    return key.replace("txn_", "txn", 1)[:KEY_CHARACTERS_MAX] if key else None


def _lines(text: str) -> list[str]:
    """The text in lines of the length that the format allows, cut at spaces, which readers restore; a longer word is
    cut anywhere."""
    lines: list[str] = []
    while len(text) > NAME_CHARACTERS_MAX:
        cut = text.rfind(" ", 1, NAME_CHARACTERS_MAX + 1)
        end = cut if cut > 0 else NAME_CHARACTERS_MAX
        lines.append(text[:end])
        text = text[end:].lstrip(" ")
    return [*lines, text] if text else lines


def _day_text(day: date | None, made: str) -> str:
    return day.isoformat() if day else made[:10]
