"""The transactions of one entry (Ntry) of a camt message: sign, parties, references, texts, codes."""

import re
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from msgspec import Struct

from analytics.messages import Message
from analytics.records import TransactionRecord
from connectors.camt.texts import Texts, text
from connectors.limits import CODE_CHARACTERS_MAX
from connectors.reference.gvc import bank_transaction_code_of
from connectors.text import (
    clean,
    clean_key,
    clean_purpose,
    compact_iban,
    is_placeholder,
    parse_amount,
    parse_bic,
    parse_creditor_id,
    parse_date,
    parse_iban,
    reference,
)

_PROPRIETARY = re.compile(r"(?:([NSF][A-Z0-9]{3})\+)?([0-9]{3})(?:\+.*)?")
_GERMAN_ISSUERS = frozenset({"DK", "ZKA", "DFUE", "DFÜ", "BDB"})
_RETURNS = frozenset({"RRTN", "UPDD", "UPCT", "UPCQ", "PRDD", "RPCR"})  # ISO 20022 subfamilies of given-back payments
_STRUCTURED = (
    "RmtInf/Strd/CdtrRefInf/Ref", "RmtInf/Strd/CdtrRefInf/CdtrRef", "RmtInf/Strd/RfrdDocInf/Nb",
    "RmtInf/Strd/AddtlRmtInf",
)  # fmt: skip
_MERCHANT_CATEGORY = (
    *(f"CardTx/{holder}MrchntCtgyCd" for holder in ("Tx/Indv/", "Tx/", "POI/", "")),
    "CardTx/Tx/Indv/TxCtgy",  # since version 04 the place in the schema for a category code of ISO 18245
)
_PENDING = frozenset({"PDNG", "FUTR"})  # INFO is served: decision in docs/decisions/readers.md


class Own(Struct, frozen=True, kw_only=True):
    """The account of a statement: its `key` in the records, IBAN, BIC and currency; and `last_day`, the booking date of
    entries without a day."""

    key: str
    iban: str | None
    bic: str | None
    currency: str
    last_day: date | None


class _Counterpart(NamedTuple):
    """The facts about the other side; the fields are those of `TransactionRecord`."""

    counterpart_name: str | None = None
    counterpart_iban: str | None = None
    counterpart_bic: str | None = None
    counterpart_bank_name: str | None = None
    creditor_id: str | None = None
    debitor_id: str | None = None


_NOTHING = Texts()


def read_entry(entry: Texts, details: list[Texts], own: Own) -> list[TransactionRecord]:
    """The transactions of an entry: one, or one for each detail of a batch that adds up (readers.md, 11).
    Raises `ValueError` saying what the entry lacks."""
    amount = read_amount(entry)
    amount = -amount if _is_debit(entry.get("CdtDbtInd")) else amount
    amounts = _split_amounts(entry, details, amount)
    if amounts is None:
        detail = details[0] if len(details) == 1 else _NOTHING
        return [_transaction(entry, detail, own, amount, details if len(details) > 1 else [])]
    batch = reference("servicer", entry.get("AcctSvcrRef")) or f"batch:{len(details)}x{abs(amount)}"
    return [
        _transaction(entry, detail, own, share, [], batch=batch, index=index)
        for index, (detail, share) in enumerate(zip(details, amounts, strict=True))
    ]


def read_amount(texts: Texts) -> Decimal:
    """The amount as written, without a sign, which is in CdtDbtInd. Raises `ValueError`."""
    written = texts.get("Amt")
    if written is None:
        raise ValueError("has no amount")
    return _number(written)


def read_day(texts: Texts, *paths: str) -> date | None:
    """The day of the date or date-time at the first path that has a text; None where none has. Raises `ValueError`."""
    for path in paths:
        written = texts.get(path)
        if written and not written.isspace():
            break
    else:
        return None
    try:
        return parse_date(written)
    except ValueError:
        raise ValueError(Message("its {field} is not a date", field=paths[0].partition("/")[0])) from None


def _number(written: str) -> Decimal:
    try:
        return parse_amount(written)
    except ValueError:
        raise ValueError("its amount is not a number") from None


def _is_debit(mark: str | None) -> bool:
    if mark == "DBIT" or mark == "CRDT":
        return mark == "DBIT"
    if (mark or "").strip() not in ("CRDT", "DBIT"):
        raise ValueError("is neither credit nor debit")
    return (mark or "").strip() == "DBIT"


def _split_amounts(entry: Texts, details: list[Texts], total: Decimal) -> list[Decimal] | None:
    if len(details) < 2:
        return None
    currency = text(entry, "Amt/@Ccy")
    amounts: list[Decimal] = []
    for detail in details:
        path = "Amt" if "Amt" in detail else "AmtDtls/TxAmt/Amt"
        written = text(detail, path)
        if written is None or text(detail, f"{path}/@Ccy") != currency:
            return None
        try:
            amount = _number(written)
            amounts.append(-amount if _is_debit(text(detail, "CdtDbtInd") or text(entry, "CdtDbtInd")) else amount)
        except ValueError:
            return None
    return amounts if sum(amounts) == total else None


def _transaction(
    entry: Texts, detail: Texts, own: Own, amount: Decimal, joined: list[Texts], batch: str = "", index: int = 0
) -> TransactionRecord:
    code, gvc, swift_code = _codes(entry, detail, own, amount)
    is_return = "RtrInf" in detail or (code is not None and code[-4:] in _RETURNS)
    party = _shared_counterpart(joined, own, amount) if joined else _counterpart(detail, own, amount, is_return)
    currency = (entry.get("Amt/@Ccy") or own.currency).strip().upper()
    original_amount, original_currency = (None, None) if joined else _original(entry, detail, currency)
    value_date = read_day(entry, "ValDt/Dt", "ValDt/DtTm")
    return TransactionRecord(
        amount=amount,
        currency=currency,
        booking_date=_booking_date(entry, detail, value_date, own),
        value_date=value_date,
        status="pending" if (entry.get("Sts/Cd") or entry.get("Sts") or "").strip() in _PENDING else "booked",
        references=_references(entry, detail, f"{batch}/{index}" if batch else None),
        **party._asdict(),
        mandate_reference=clean_key(detail.get("Refs/MndtId")),
        end_to_end_id=clean_key(detail.get("Refs/EndToEndId")),
        purpose=_purpose(entry, joined or [detail]),
        bank_transaction_code=code,
        purpose_code=_purpose_code(detail.get("Purp/Cd")),
        gvc=gvc,
        swift_code=swift_code,
        mcc=_merchant_category(entry, detail),
        bank_text=clean(entry.get("AddtlNtryInf")),
        merchant_name=clean(detail.get("CardTx/POI/Id/ShrtNm") or entry.get("CardTx/POI/Id/ShrtNm")),
        original_amount=original_amount,
        original_currency=original_currency,
        is_reversal=entry.get("RvslInd", "").strip() in ("true", "1"),
        is_return=is_return,
        detail=index,
    )


def _booking_date(entry: Texts, detail: Texts, value_date: date | None, own: Own) -> date:
    """The booking date: BookgDt, else ValDt, else the settlement between the banks, else the statement's own day.
    Raises `ValueError`."""
    day = read_day(entry, "BookgDt/Dt", "BookgDt/DtTm") or value_date
    day = day or read_day(detail, "RltdDts/IntrBkSttlmDt") or own.last_day
    if day is None:
        raise ValueError("has no date")
    return day


def _references(entry: Texts, detail: Texts, part: str | None) -> tuple[str, ...]:
    """The references of a transaction, the strongest first: the bank's reference for the entry; for a
    detail of a divided batch, `part` instead, which is the batch's reference and the detail's place in it, so that a
    format which gives only the sum can be compared. Those of the detail follow, then the number of an undivided entry.
    The import core decides whether they are unique."""
    candidates = (
        part or reference("servicer", entry.get("AcctSvcrRef")),
        reference("servicer", detail.get("Refs/AcctSvcrRef")),
        reference("txid", detail.get("Refs/TxId")),
        reference("ntryref", entry.get("NtryRef")) if part is None else None,
    )
    return tuple(dict.fromkeys(filter(None, candidates)))


def _counterpart(detail: Texts, own: Own, amount: Decimal, is_return: bool) -> _Counterpart:
    """The counterpart: the party without our own IBAN, else the one that the sign implies, with swapped roles in a
    returned payment."""
    creditor_iban, debtor_iban = _iban(detail, _CREDITOR), _iban(detail, _DEBTOR)
    side = _CREDITOR if (amount < 0) != is_return else _DEBTOR
    if own.iban and (creditor_iban == own.iban) != (debtor_iban == own.iban):
        side = _DEBTOR if creditor_iban == own.iban else _CREDITOR
    elif is_return and not _name(detail, side.names) and not _iban(detail, side):
        side = _DEBTOR if side is _CREDITOR else _CREDITOR  # Swiss returns name only one party, in its new role
    is_creditor = side is _CREDITOR
    has_agents = "RltdAgts" in detail
    return _Counterpart(
        counterpart_name=_name(detail, side.names) or _name(detail, side.ultimate_names),
        counterpart_iban=creditor_iban if is_creditor else debtor_iban,
        counterpart_bic=parse_bic(_first_text(detail, side.bics)) if has_agents else None,
        counterpart_bank_name=clean(_first_text(detail, side.bank_names)) if has_agents else None,
        creditor_id=_creditor_id(detail) if is_creditor else None,
        debitor_id=None if is_creditor else next(iter(_identifications(detail, _DEBTOR)), None),
    )


def _shared_counterpart(details: list[Texts], own: Own, amount: Decimal) -> _Counterpart:
    """The counterpart of a batch that is not divided, if all its details have the same one; else an empty one."""
    parties = [_counterpart(detail, own, amount, "RtrInf" in detail) for detail in details]
    return parties[0] if all(party == parties[0] for party in parties) else _Counterpart()


def _first_text(texts: Texts, paths: tuple[str, ...]) -> str | None:
    for path in paths:
        if path in texts:
            return texts[path]
    return None


def _name(detail: Texts, paths: tuple[str, ...]) -> str | None:
    name = clean(_first_text(detail, paths))
    return None if name is None or is_placeholder(name) else name


def _iban(detail: Texts, side: "_Side") -> str | None:
    if (stated := detail.get(side.iban)) and (iban := compact_iban(stated)):
        return iban
    return parse_iban(detail.get(side.other_account))


def _identifications(detail: Texts, side: "_Side") -> list[str]:
    texts = [written for path in side.ids if path in detail for written in detail.all(path)]
    return [key for written in texts if (key := clean_key(written))] if texts else texts


def _creditor_id(detail: Texts) -> str | None:
    for key in _identifications(detail, _CREDITOR):
        if creditor_id := parse_creditor_id(key):
            return creditor_id
    return None


class _Side:
    """The paths at which a detail names its creditor or its debtor (`role`), those up to version 7 and those since."""

    def __init__(self, role: str) -> None:
        party, agent = f"RltdPties/{role}", f"RltdAgts/{role}Agt/FinInstnId"
        self.names = (f"{party}/Nm", f"{party}/Pty/Nm", f"{party}/Agt/FinInstnId/Nm")
        self.ultimate_names = (f"RltdPties/Ultmt{role}/Nm", f"RltdPties/Ultmt{role}/Pty/Nm")
        self.iban, self.other_account = f"{party}Acct/Id/IBAN", f"{party}Acct/Id/Othr/Id"
        self.bics = (f"{agent}/BICFI", f"{agent}/BIC", f"{agent}/CmbndId/BIC")
        self.bank_names = (f"{agent}/Nm", f"{agent}/CmbndId/Nm")
        holders = (f"{party}/Id", f"{party}/Pty/Id")
        self.ids = tuple(f"{holder}/{kind}/Othr/Id" for holder in holders for kind in ("PrvtId", "OrgId"))


_CREDITOR, _DEBTOR = _Side("Cdtr"), _Side("Dbtr")


def _purpose(entry: Texts, details: list[Texts]) -> str | None:
    remittances = [line for detail in details for line in _remittance(detail)]
    if not remittances:
        remittances = [line for detail in details for line in detail.all("AddtlTxInf")]
    return clean_purpose(*remittances) or clean_purpose(entry.get("AddtlNtryInf"))


def _remittance(detail: Texts) -> list[str]:
    lines = [line for line in detail.all("RmtInf/Ustrd") if line.strip()]
    return lines or [line for path in _STRUCTURED for line in detail.all(path) if line.strip()]


def _codes(entry: Texts, detail: Texts, own: Own, amount: Decimal) -> tuple[str | None, str | None, str | None]:
    """Bank transaction code, GVC and SWIFT code, each from the detail, else from the entry, None where neither has it.
    A missing bank transaction code is derived from the GVC."""
    code = gvc = swift_code = None
    for level in (detail, entry):
        if "BkTxCd" not in level:
            continue
        if not code and (domain := level.get("BkTxCd/Domn/Cd")):
            family, subfamily = level.get("BkTxCd/Domn/Fmly/Cd"), level.get("BkTxCd/Domn/Fmly/SubFmlyCd")
            code = f"{domain.strip()}-{family.strip()}-{subfamily.strip()}" if family and subfamily else None
        if not gvc and (proprietary := _PROPRIETARY.fullmatch(level.get("BkTxCd/Prtry/Cd") or "")):
            issuer = (text(level, "BkTxCd/Prtry/Issr") or "").upper()
            swift_code = proprietary[1]
            if issuer in _GERMAN_ISSUERS or (swift_code and (not issuer or (own.iban or "").startswith("DE"))):
                gvc = proprietary[2]
    return clean(code, CODE_CHARACTERS_MAX) or bank_transaction_code_of(gvc, is_credit=amount > 0), gvc, swift_code


def _original(entry: Texts, detail: Texts, currency: str) -> tuple[Decimal | None, str | None]:
    """The amount and currency before conversion, without a sign; both None where no amount in another currency than
    that of the booking is stated."""
    for level in (detail, entry):
        if "AmtDtls" not in level:
            continue
        for name in ("InstdAmt", "TxAmt", "CntrValAmt"):
            path = f"AmtDtls/{name}/Amt"
            stated = (text(level, f"{path}/@Ccy") or currency).upper()
            if stated != currency and (written := text(level, path)):
                return abs(_number(written)), stated
    return None, None


def _purpose_code(code: str | None) -> str | None:
    return code if code and len(code) == 4 and code.isascii() and code.isalnum() and code.isupper() else None


def _merchant_category(entry: Texts, detail: Texts) -> str | None:
    for level in (detail, entry):
        if "CardTx" in level and (code := text(level, *_MERCHANT_CATEGORY)) and len(code) == 4 and code.isdigit():
            return code
    return None
