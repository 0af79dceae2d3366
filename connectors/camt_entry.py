"""What one entry (Ntry) of a camt message means as transactions: sign, parties, references, texts, codes."""

import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal, Union

from connectors.gvc import bank_transaction_code_of
from connectors.text import (
    clean,
    clean_key,
    clean_purpose,
    compact_iban,
    parse_amount,
    parse_bic,
    parse_creditor_id,
    parse_date,
    parse_iban,
    reference,
)
from storage.records import TransactionRecord

Tree = dict[str, list[Union["Tree", str]]]
Side = Literal["Cdtr", "Dbtr"]

_PROPRIETARY = re.compile(r"(?:([NSF][A-Z0-9]{3})\+)?([0-9]{3})(?:\+.*)?")
_GERMAN_ISSUERS = frozenset({"DK", "ZKA", "DFUE", "DFÜ", "BDB"})
_RETURNS = frozenset({"RRTN", "UPDD", "UPCT", "UPCQ", "PRDD", "RPCR"})  # ISO 20022 subfamilies of given-back payments
_PENDING = frozenset({"PDNG", "FUTR"})  # INFO is served: decision in docs/decisions/readers.md


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """The account a statement is about, and the day of an entry that names none."""

    key: str
    iban: str | None
    bic: str | None
    currency: str
    last_day: date | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Party:
    name: str | None = None
    iban: str | None = None
    bic: str | None = None
    bank_name: str | None = None
    creditor_id: str | None = None
    debitor_id: str | None = None


def read_entry(entry: Tree, own: Own) -> list[TransactionRecord]:
    """One transaction, or one for each detail of a batch that adds up (batch policy of sources 1.2).

    `ValueError` says what the entry lacks.
    """
    amount = read_amount(entry)
    amount = -amount if _is_debit(text(entry, "CdtDbtInd")) else amount
    details = _details(entry)
    amounts = _split(entry, details, amount)
    if amounts is None:
        detail = details[0] if len(details) == 1 else {}
        return [_transaction(entry, detail, own, amount, details if len(details) > 1 else [])]
    return [
        _transaction(entry, detail, own, share, [], index=index)
        for index, (detail, share) in enumerate(zip(details, amounts, strict=True))
    ]


def first(branches: Tree, *path: str) -> Tree | None:
    """The first branch at the path, None where there is none."""
    for name in path:
        found = branches.get(name)
        if not found or not isinstance(branch := found[0], dict):
            return None
        branches = branch
    return branches


def text(branches: Tree, *path: str) -> str | None:
    """The first text at the path, None where there is none."""
    node: Tree | str = branches
    for name in path:
        if not isinstance(node, dict):
            return None
        found = node.get(name)
        if not found:
            return None
        node = found[0]
    if isinstance(node, dict):
        leaf = node.get("")
        node = leaf[0] if leaf and isinstance(leaf[0], str) else ""
        assert isinstance(node, str)
    return node or None


def read_amount(branches: Tree) -> Decimal:
    """The amount as it is written, never negative by itself: CdtDbtInd alone gives the sign."""
    written = text(branches, "Amt")
    if written is None:
        raise ValueError("has no amount")
    try:
        return parse_amount(written)
    except ValueError:
        raise ValueError("its amount is not a number") from None


def read_day(written: str | None) -> date | None:
    """The calendar day of a date or date-time; `ValueError` for anything else but nothing."""
    return parse_date(written) if written and written.strip() else None


def _is_debit(indicator: str | None) -> bool:
    mark = (indicator or "").strip()
    if mark not in ("CRDT", "DBIT"):
        raise ValueError("is neither credit nor debit")
    return mark == "DBIT"


def _details(entry: Tree) -> list[Tree]:
    containers: list[Tree] = [found for found in entry.get("NtryDtls", ()) if isinstance(found, dict)]
    containers.append(entry)  # camt.052.001.01 has no NtryDtls
    return [detail for holder in containers for detail in holder.get("TxDtls", ()) if isinstance(detail, dict)]


def _split(entry: Tree, details: list[Tree], total: Decimal) -> list[Decimal] | None:
    if len(details) < 2:
        return None
    currency = text(entry, "Amt", "@Ccy")
    amounts: list[Decimal] = []
    for detail in details:
        written = first(detail, "AmtDtls", "TxAmt") if text(detail, "Amt") is None else detail
        if written is None or text(written, "Amt", "@Ccy") != currency:
            return None
        try:
            amount = read_amount(written)
            indicator = text(detail, "CdtDbtInd") or text(entry, "CdtDbtInd")
            amounts.append(-amount if _is_debit(indicator) else amount)
        except ValueError:
            return None
    return amounts if sum(amounts) == total else None


def _transaction(
    entry: Tree, detail: Tree, own: Own, amount: Decimal, joined: list[Tree], index: int | None = None
) -> TransactionRecord:
    references = first(detail, "Refs") or {}
    code, gvc, swift_code = _codes(entry, detail, own, amount)
    is_return = "RtrInf" in detail or (code is not None and code[-4:] in _RETURNS)
    party = _shared_counterpart(joined, own, amount) if joined else _counterpart(detail, own, amount, is_return)
    currency = (text(entry, "Amt", "@Ccy") or own.currency).strip().upper()
    original_amount, original_currency = (None, None) if joined else _original(entry, detail, currency)
    value_date = _day(entry, "ValDt")
    return TransactionRecord(
        amount=amount,
        currency=currency,
        booking_date=_booking_date(entry, detail, value_date, own),
        value_date=value_date,
        status="pending" if _status(entry) in _PENDING else "booked",
        references=_references(entry, references, index),
        counterpart_name=party.name,
        counterpart_iban=party.iban,
        counterpart_bic=party.bic,
        counterpart_bank_name=party.bank_name,
        creditor_id=party.creditor_id,
        debitor_id=party.debitor_id,
        mandate_reference=clean_key(text(references, "MndtId")),
        end_to_end_id=clean_key(text(references, "EndToEndId")),
        purpose=_purpose(entry, joined or [detail]),
        bank_transaction_code=code,
        purpose_code=_code(text(detail, "Purp", "Cd")),
        gvc=gvc,
        swift_code=swift_code,
        mcc=_merchant_category(entry, detail),
        bank_text=clean(text(entry, "AddtlNtryInf")),
        merchant_name=_merchant(entry, detail),
        original_amount=original_amount,
        original_currency=original_currency,
        is_reversal=(text(entry, "RvslInd") or "").strip() in ("true", "1"),
        is_return=is_return,
    )


def _status(entry: Tree) -> str:
    return (text(entry, "Sts", "Cd") or text(entry, "Sts") or "BOOK").strip()


def _day(branches: Tree, name: str) -> date | None:
    try:
        return read_day(text(branches, name, "Dt") or text(branches, name, "DtTm"))
    except ValueError:
        raise ValueError(f"its {name} is not a date") from None


def _booking_date(entry: Tree, detail: Tree, value_date: date | None, own: Own) -> date:
    """BookgDt, else ValDt, else the settlement between the banks, else the statement's own day."""
    found = _day(entry, "BookgDt") or value_date
    if found is None and (settled := text(detail, "RltdDts", "IntrBkSttlmDt")):
        found = read_day(settled)
    found = found or own.last_day
    if found is None:
        raise ValueError("has no date")
    return found


def _references(entry: Tree, references: Tree, index: int | None) -> tuple[str, ...]:
    """Strongest first (sources 4.3); the import core decides whether they are unique."""
    servicer = reference("servicer", text(entry, "AcctSvcrRef"))
    candidates = (
        f"{servicer}/{index}" if servicer and index is not None else servicer,
        reference("servicer", text(references, "AcctSvcrRef")),
        reference("txid", text(references, "TxId")),
        reference("ntryref", text(entry, "NtryRef")) if index is None else None,
    )
    return tuple(dict.fromkeys(found for found in candidates if found))


def _counterpart(detail: Tree, own: Own, amount: Decimal, is_return: bool) -> _Party:
    """The party that is not us: by our own IBAN, else by the sign, the roles swapped in a returned payment."""
    parties = first(detail, "RltdPties") or {}
    creditor_iban, debtor_iban = _iban(parties, "Cdtr"), _iban(parties, "Dbtr")
    side: Side = "Cdtr" if (amount < 0) != is_return else "Dbtr"
    if own.iban and (creditor_iban == own.iban) != (debtor_iban == own.iban):
        side = "Dbtr" if creditor_iban == own.iban else "Cdtr"
    elif is_return and not _name(parties, side) and not _iban(parties, side):
        side = "Dbtr" if side == "Cdtr" else "Cdtr"  # Swiss returns name one party only, under its new role
    agent = first(detail, "RltdAgts", f"{side}Agt", "FinInstnId") or {}
    return _Party(
        name=_name(parties, side) or _name(parties, f"Ultmt{side}"),
        iban=creditor_iban if side == "Cdtr" else debtor_iban,
        bic=parse_bic(text(agent, "BICFI") or text(agent, "BIC") or text(agent, "CmbndId", "BIC")),
        bank_name=clean(text(agent, "Nm") or text(agent, "CmbndId", "Nm")),
        creditor_id=_creditor_id(parties) if side == "Cdtr" else None,
        debitor_id=next(iter(_identifications(parties, "Dbtr")), None) if side == "Dbtr" else None,
    )


def _shared_counterpart(details: list[Tree], own: Own, amount: Decimal) -> _Party:
    """The counterpart of a batch that stays whole, if all its details have the same one."""
    parties = [_counterpart(detail, own, amount, "RtrInf" in detail) for detail in details]
    return parties[0] if all(party == parties[0] for party in parties) else _Party()


def _name(parties: Tree, role: str) -> str | None:
    party = first(parties, role)
    if party is None:
        return None
    name = text(party, "Nm") or text(party, "Pty", "Nm") or text(party, "Agt", "FinInstnId", "Nm")
    name = clean(name)
    return None if name is None or name.upper() in ("NOTPROVIDED", "NOT PROVIDED", "-") else name


def _iban(parties: Tree, side: Side) -> str | None:
    account = first(parties, f"{side}Acct", "Id")
    if account is None:
        return None
    return compact_iban(text(account, "IBAN")) or parse_iban(text(account, "Othr", "Id"))


def _identifications(parties: Tree, side: Side) -> list[str]:
    party = first(parties, side) or {}
    identification = first(party, "Id") or first(party, "Pty", "Id") or {}
    return [
        key
        for kind in ("PrvtId", "OrgId")
        for other in (first(identification, kind) or {}).get("Othr", ())
        if isinstance(other, dict) and (key := clean_key(text(other, "Id")))
    ]


def _creditor_id(parties: Tree) -> str | None:
    return next((found for key in _identifications(parties, "Cdtr") if (found := parse_creditor_id(key))), None)


def _purpose(entry: Tree, details: list[Tree]) -> str | None:
    remittances = [part for detail in details for part in _remittance(detail)]
    if not any(remittances):
        remittances = [text(detail, "AddtlTxInf") for detail in details]
    return clean_purpose(*remittances) or clean_purpose(text(entry, "AddtlNtryInf"))


def _remittance(detail: Tree) -> list[str | None]:
    remittance = first(detail, "RmtInf")
    if remittance is None:
        return []
    lines: list[str | None] = [line for line in remittance.get("Ustrd", ()) if isinstance(line, str)]
    if any(lines):
        return lines
    for structured in remittance.get("Strd", ()):
        if isinstance(structured, dict):
            lines.append(text(structured, "CdtrRefInf", "Ref") or text(structured, "CdtrRefInf", "CdtrRef"))
            lines.append(text(structured, "RfrdDocInf", "Nb"))
            lines += [line for line in structured.get("AddtlRmtInf", ()) if isinstance(line, str)]
    return lines


def _codes(entry: Tree, detail: Tree, own: Own, amount: Decimal) -> tuple[str | None, str | None, str | None]:
    """Bank transaction code, GVC and SWIFT code: the detail's own first, then the entry's."""
    code = gvc = swift_code = None
    for level in (first(detail, "BkTxCd"), first(entry, "BkTxCd")):
        if level is None:
            continue
        domain = first(level, "Domn")
        if domain and not code:
            parts = (text(domain, "Cd"), text(domain, "Fmly", "Cd"), text(domain, "Fmly", "SubFmlyCd"))
            code = "-".join(part.strip() for part in parts if part) if all(parts) else None
        proprietary = _PROPRIETARY.fullmatch((text(level, "Prtry", "Cd") or "").strip())
        if proprietary and not gvc:
            issuer = (text(level, "Prtry", "Issr") or "").strip().upper()
            swift_code = proprietary[1]
            if issuer in _GERMAN_ISSUERS or (swift_code and (not issuer or (own.iban or "").startswith("DE"))):
                gvc = proprietary[2]
    return clean(code) or bank_transaction_code_of(gvc, is_credit=amount > 0), gvc, swift_code


def _original(entry: Tree, detail: Tree, currency: str) -> tuple[Decimal | None, str | None]:
    """The amount in the currency it was paid in, where that is another one."""
    for level in (detail, entry):
        amounts = first(level, "AmtDtls") or {}
        for name in ("InstdAmt", "TxAmt", "CntrValAmt"):
            written = first(amounts, name)
            stated = (text(written, "Amt", "@Ccy") or "").strip().upper() if written else ""
            if written and stated and stated != currency:
                return abs(read_amount(written)), stated
    return None, None


def _code(written: str | None) -> str | None:
    code = (written or "").strip()
    return code if len(code) == 4 and code.isascii() and code.isalnum() and code.isupper() else None


def _merchant(entry: Tree, detail: Tree) -> str | None:
    for level in (detail, entry):
        name = clean(text(level, "CardTx", "POI", "Id", "ShrtNm"))
        if name:
            return name
    return None


def _merchant_category(entry: Tree, detail: Tree) -> str | None:
    for level in (detail, entry):
        card = first(level, "CardTx")
        for path in (
            ("Tx", "MrchntCtgyCd"),
            ("Tx", "Indv", "MrchntCtgyCd"),
            ("POI", "MrchntCtgyCd"),
            ("MrchntCtgyCd",),
        ):
            code = (text(card, *path) or "").strip() if card else ""
            if len(code) == 4 and code.isdigit():
                return code
    return None
