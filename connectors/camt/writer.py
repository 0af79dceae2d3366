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
from connectors.blocks import Block, blocks

NAMESPACE = "urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"
NAME_CHARACTERS_MAX = 140  # Max140Text: names, and each line of a remittance text
ACCOUNT_NAME_CHARACTERS_MAX = 70
KEY_CHARACTERS_MAX = 35  # Max35Text
NUMBER_CHARACTERS_MAX = 34  # an account number that is no IBAN
NOTE_CHARACTERS_MAX = 500
KINDS = {"checking": "CACC", "savings": "SVGS", "credit_card": "CARD", "loan": "LOAN"}
UNSTATED = "NOTPROVIDED"


def write(records: Iterable[Record], stream: BinaryIO, *, created: datetime) -> None:
    """Write the records as one message; rows wait on disk until the balances are known, so memory stays bounded."""
    made = _instant(created)
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
    number = _tag("IBAN", account.iban) if account.iban else _tag("Othr", raw=_tag("Id", key))
    kind = KINDS.get(account.kind or "")
    agent = _tag("BICFI", account.bic) + _tag("Nm", account.bank_name, NAME_CHARACTERS_MAX)
    sequence = statement.sequence if (statement.sequence or "").isascii() else None
    return "".join(
        (
            "<Stmt>",
            _tag("Id", f"STATEMENT-{block.number}"),
            _tag("ElctrncSeqNb", sequence if sequence and sequence.isdigit() else None),
            _tag("CreDtTm", made),
            _tag(
                "Acct",
                raw=_tag("Id", raw=number)
                + (_tag("Tp", raw=_tag("Cd", kind)) if kind else "")
                + _tag("Ccy", account.currency)
                + _tag("Nm", account.name, ACCOUNT_NAME_CHARACTERS_MAX)
                + _tag("Svcr", raw=_tag("FinInstnId", raw=agent)),
            ),
            _balances(block, made),
            "\n",
        )
    )


def _balances(block: Block, made: str) -> str:
    found, statement = block.balances(), block.statement
    if found is None:
        return _balance(_tag("Prtry", UNSTATED), Decimal(0), block.account.currency, made[:10])
    opening, closing = found
    opened = statement.opening_date or block.first or statement.closing_date
    closed = statement.closing_date or block.last or opened
    return _balance(_tag("Cd", "OPBD"), opening, block.account.currency, _day_text(opened, made)) + _balance(
        _tag("Cd", "CLBD"), closing, block.account.currency, _day_text(closed, made)
    )


def _balance(kind: str, amount: Decimal, currency: str, day: str) -> str:
    return _tag(
        "Bal",
        raw=_tag("Tp", raw=_tag("CdOrPrtry", raw=kind)) + _amount(amount, currency) + _tag("Dt", raw=_tag("Dt", day)),
    )


def _entry(account: AccountRecord, row: TransactionRecord) -> str:
    """The element of one booking; the account owner is the debtor of an outgoing payment, the roles are swapped in a
    return."""
    references = {kind: key for kind, _, key in (text.partition(":") for text in reversed(row.references))}
    return (
        _tag(
            "Ntry",
            raw="".join(
                (
                    _tag("NtryRef", references.get("ntryref"), KEY_CHARACTERS_MAX),
                    _amount(row.amount, row.currency),
                    _tag("RvslInd", "true" if row.is_reversal else None),
                    _tag("Sts", raw=_tag("Cd", "PDNG" if row.status == "pending" else "BOOK")),
                    _tag("BookgDt", raw=_tag("Dt", row.booking_date.isoformat())),
                    _tag("ValDt", raw=_tag("Dt", row.value_date.isoformat() if row.value_date else None)),
                    _tag("AcctSvcrRef", _servicer_key(row.provider_id or references.get("servicer"))),
                    _bank_transaction_code(row) or _tag("BkTxCd", raw=_tag("Prtry", raw=_tag("Cd", UNSTATED))),
                    _tag("NtryDtls", raw=_tag("TxDtls", raw=_details(account, row, references.get("txid")))),
                    _tag("AddtlNtryInf", row.bank_text, NOTE_CHARACTERS_MAX),
                )
            ),
        )
        + "\n"
    )


def _details(account: AccountRecord, row: TransactionRecord, txid: str | None) -> str:
    return "".join(
        (
            _tag(
                "Refs",
                raw=_tag("EndToEndId", row.end_to_end_id, KEY_CHARACTERS_MAX)
                + _tag("TxId", txid, KEY_CHARACTERS_MAX)
                + _tag("MndtId", row.mandate_reference, KEY_CHARACTERS_MAX),
            ),
            _original(row),
            _parties(account, row),
            _tag("Purp", raw=_tag("Cd", row.purpose_code)),
            _tag("RmtInf", raw="".join(_tag("Ustrd", line) for line in _lines(row.purpose or ""))),
            _tag("RtrInf", raw=_tag("Rsn", raw=_tag("Prtry", "RETURN"))) if row.is_return else "",
            _card(row),
        )
    )


def _original(row: TransactionRecord) -> str:
    if row.original_amount is None or row.original_currency is None:
        return ""
    amount = _tag("Amt", _digits(abs(row.original_amount)), attributes=f' Ccy="{escape(row.original_currency)}"')
    return _tag("AmtDtls", raw=_tag("InstdAmt", raw=amount))


def _parties(account: AccountRecord, row: TransactionRecord) -> str:
    creditor_is_other = (row.amount < 0) != row.is_return
    other, own = ("Cdtr", "Dbtr") if creditor_is_other else ("Dbtr", "Cdtr")
    key = row.creditor_id if creditor_is_other else row.debitor_id
    scheme = _tag("SchmeNm", raw=_tag("Prtry", "SEPA")) if creditor_is_other else ""
    identification = _tag("Id", raw=_tag("PrvtId", raw=_tag("Othr", raw=_tag("Id", key, KEY_CHARACTERS_MAX) + scheme)))
    name = _tag("Nm", row.counterpart_name, NAME_CHARACTERS_MAX)
    written = {
        other: _tag(other, raw=_tag("Pty", raw=name + (identification if key else ""))),
        f"{other}Acct": _tag(f"{other}Acct", raw=_tag("Id", raw=_tag("IBAN", row.counterpart_iban))),
        f"{own}Acct": _tag(f"{own}Acct", raw=_tag("Id", raw=_tag("IBAN", account.iban))),
    }
    parties = "".join(written.get(name, "") for name in ("Dbtr", "DbtrAcct", "Cdtr", "CdtrAcct"))
    agent = _tag("BICFI", row.counterpart_bic) + _tag("Nm", row.counterpart_bank_name, NAME_CHARACTERS_MAX)
    return _tag("RltdPties", raw=parties) + _tag("RltdAgts", raw=_tag(f"{other}Agt", raw=_tag("FinInstnId", raw=agent)))


def _bank_transaction_code(row: TransactionRecord) -> str:
    domain = ""
    if row.bank_transaction_code and len(parts := row.bank_transaction_code.split("-")) == 3:
        family = _tag("Cd", parts[1]) + _tag("SubFmlyCd", parts[2])
        domain = _tag("Domn", raw=_tag("Cd", parts[0]) + _tag("Fmly", raw=family))
    proprietary = ""
    if row.gvc:
        code = f"{row.swift_code}+{row.gvc}" if row.swift_code else row.gvc
        proprietary = _tag("Prtry", raw=_tag("Cd", code) + _tag("Issr", "DK"))
    return _tag("BkTxCd", raw=domain + proprietary)


def _card(row: TransactionRecord) -> str:
    """The merchant and the merchant category code (ISO 18245), for which the schema has the category of the
    transaction."""
    merchant = row.merchant_name[:KEY_CHARACTERS_MAX] if row.merchant_name else None
    point = _tag("POI", raw=_tag("Id", raw=_tag("Id", UNSTATED) + _tag("ShrtNm", merchant))) if merchant else ""
    has_category = row.mcc is not None and len(row.mcc) == 4
    category = _tag("Tx", raw=_tag("Indv", raw=_tag("TxCtgy", row.mcc))) if has_category else ""
    return _tag("CardTx", raw=point + category)


def _amount(amount: Decimal, currency: str) -> str:
    sign = "DBIT" if amount < 0 else "CRDT"
    return _tag("Amt", _digits(abs(amount)), attributes=f' Ccy="{escape(currency)}"') + _tag("CdtDbtInd", sign)


def _digits(amount: Decimal) -> str:
    return f"{amount:f}"


def _servicer_key(key: str | None) -> str | None:
    """The reference of the bank. Our own ids are one character too long for the format; the import core also knows them
    without their underscore."""
    return key.replace("txn_", "txn", 1)[:KEY_CHARACTERS_MAX] if key else None


def _lines(text: str) -> list[str]:
    """The text in lines of the length that the format allows, cut at spaces, which readers restore."""
    lines: list[str] = []
    while len(text) > NAME_CHARACTERS_MAX:
        cut = text.rfind(" ", 1, NAME_CHARACTERS_MAX + 1)
        end = cut if cut > 0 else NAME_CHARACTERS_MAX
        lines.append(text[:end])
        text = text[end:].lstrip(" ")
    return [*lines, text] if text else lines


def _day_text(day: date | None, made: str) -> str:
    return day.isoformat() if day else made[:10]


def _instant(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def _tag(
    name: str, text: str | None = None, characters: int | None = None, *, raw: str = "", attributes: str = ""
) -> str:
    """An element around a text or other elements; an empty text where it would be empty."""
    inner = raw if text is None else escape(text[:characters])
    return f"<{name}{attributes}>{inner}</{name}>" if inner else ""
