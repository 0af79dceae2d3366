"""The details in the field :86: of a booking, in the dialects of the banks: German ?20, Dutch /REMI/, labels, free
text."""

import re
from collections.abc import Iterable, Sequence

from connectors.mt940.sepa_text import Details, read_purpose_code, read_sepa_text
from connectors.text import clean, clean_key, clean_purpose, parse_bic, parse_creditor_id, parse_iban

_LINE_LENGTH = 64  # a line this long was cut by SWIFT's width of 65, a shorter one ended by itself
_MARKS = {mark: re.compile(re.escape(mark) + r"(?=\d{2})") for mark in "?>~<@^|"}
_STRUCTURED = re.compile(r"\s*+(?P<gvc>\d{3})?\s*+(?P<mark>[?>~<@^|])(?=\d{2})")
_PURPOSE_CODES = frozenset(f"{number:02d}" for number in (*range(20, 30), *range(60, 64)))
_SLASHED = re.compile(
    r"/(TRTP|TRCD|IBAN|BIC|NAME|REMI|EREF|MARF|CSID|CNTP|ORDP|BENM|ADDR|ISDT|PREF|RTRN|ACCW|PURP|ULTC|ULTD|ULTB|UCRD|"
    r"UDTR|SVCL|INIT|NRTX|OCMT|CHGS|EXCH|USTD|STRD|CREF|IREF|SUM)(?=/)"  # the slash may open the next one: /REMI/USTD/
)
_PLACED = frozenset({"CNTP", "BENM", "ORDP"})  # fields in which an empty part counts
_LABELS = re.compile(
    r"\b(IBAN|REK|BIC|NAAM|MACHTIGING|INCASSANT|OMSCHRIJVING|KENMERK|BETALINGSKENMERK|BETALINGSKENM\.)\s?:\s"
)


def read_details(
    fields: Sequence[tuple[str, list[str]]], supplement: Sequence[str], customer: str, *, is_german: bool
) -> Details:
    """The details of one booking: from its :86: (or :NS:) fields, given as tag and lines; from the supplementary lines
    of its :61:; and from the customer reference there, in which some banks write the counterpart's account. `is_german`
    says that three digits at the beginning are a GVC."""
    lines = [line for tag, content in fields if tag == "86" for line in content]
    head = (lines[0] if lines else "").lstrip()
    structured = _STRUCTURED.match(head)
    if structured and _is_structured(structured, lines):
        return _german_details("".join(lines), structured, is_german=is_german)
    if _SLASHED.match(head):
        return _dutch_details(join_lines(lines), supplement, customer)
    if not lines and any(tag == "NS" for tag, _ in fields):
        return _non_swift_details(line for tag, content in fields if tag == "NS" for line in content)
    return _free_details(lines, supplement, customer)


def join_lines(lines: Iterable[str]) -> str:
    """The lines as one text: joined directly where the width cut a word, with a space where a line ended by itself."""
    text = ""
    was_cut = True
    for line in lines:
        text += line if was_cut else " " + line
        was_cut = len(line) >= _LINE_LENGTH
    return text


def _is_structured(match: re.Match[str], lines: list[str]) -> bool:
    return match["gvc"] is not None or len(_MARKS[match["mark"]].findall("".join(lines))) > 1


def _german_details(text: str, match: re.Match[str], *, is_german: bool) -> Details:
    """The details in the German form: 166?00bank text?10prima nota?20..?29?60..?63purpose?30BIC?31account?32?33name,
    with any mark in place of the question mark."""
    fields: dict[str, str] = {}
    pieces: list[str] = []
    for chunk in _MARKS[match["mark"]].split(text.lstrip())[1:]:
        code, content = chunk[:2], chunk[2:]
        if code in _PURPOSE_CODES:
            pieces.append(content)
        else:
            fields[code] = fields.get(code, "") + content
    sepa = read_sepa_text(pieces)
    return sepa._replace(
        counterpart_name=clean_name(fields.get("32"), fields.get("33")) or sepa.counterpart_name,
        counterpart_iban=_iban(fields.get("31")) or _iban(fields.get("38")) or sepa.counterpart_iban,
        counterpart_bic=parse_bic(fields.get("30")) or sepa.counterpart_bic,
        gvc=match["gvc"] if is_german and match["gvc"] != "000" else None,
        bank_text=clean(fields.get("00")),
    )


def clean_name(*parts: str | None) -> str | None:
    """The name in these parts, None for none; a part of 27 characters was cut and continues in the next one without a
    space."""
    text = ""
    for part in parts:
        text += (part or "") if len(text) % 27 == 0 else " " + (part or "")
    return clean(text)


def _dutch_details(text: str, supplement: Sequence[str], customer: str) -> Details:
    """The details in the Dutch form: /TRTP/../IBAN/../BIC/../NAME/../REMI/.., and ING's /CNTP/iban/bic/name/city/
    (parts in this order)."""
    pieces = _SLASHED.split(text)
    fields: dict[str, str] = {}
    for key, content in zip(pieces[1::2], pieces[2::2], strict=True):
        if content.strip(" /"):
            content = content[1:].rstrip(" /")
            fields.setdefault(key, content if key in _PLACED else content.lstrip(" /"))
    party = fields.get("CNTP", "").split("/")
    party += [""] * (3 - len(party))
    ordered = (fields.get("BENM") or fields.get("ORDP") or "").split("/")
    name = clean(fields.get("NAME")) or clean(party[2]) or (clean(ordered[1]) if len(ordered) > 1 else None)
    iban = _iban(fields.get("IBAN")) or _iban(party[0]) or _iban(ordered[0]) or _account(supplement, customer)
    remittance = fields.get("REMI") or fields.get("USTD") or fields.get("STRD")
    return Details(
        counterpart_name=name,
        counterpart_iban=iban,
        counterpart_bic=parse_bic(fields.get("BIC")) or parse_bic(party[1]),
        creditor_id=parse_creditor_id(fields.get("CSID")),
        mandate_reference=clean_key(fields.get("MARF")),
        end_to_end_id=clean_key(fields.get("EREF")),
        purpose=clean_purpose(remittance or (None if "NAME" in fields or "CNTP" in fields else text)),
        purpose_code=read_purpose_code((fields.get("PURP") or "").removeprefix("CD/")),
        bank_text=clean(fields.get("TRTP")) or _bank_text(supplement),
        is_return="RTRN" in fields,
    )


def _free_details(lines: list[str], supplement: Sequence[str], customer: str) -> Details:
    """The details in free text; labels such as "IBAN: .. NAAM: .." are read, and ASN's account in the :61: itself."""
    text = join_lines(line.rstrip() for line in lines if line.strip())
    iban, account, name = _iban(customer), customer.strip(), clean(join_lines(supplement))
    purpose = clean_purpose(text) or ""
    if iban is not None or (account and name and purpose.startswith(f"{account} {name}")):
        # ASN and SNS: the other account as customer reference, its name in the supplement, and both once more
        for known in (account, name or ""):
            purpose = purpose.removeprefix(known).lstrip()
        return Details(counterpart_name=name, counterpart_iban=iban, purpose=clean_purpose(purpose))
    labels = _labelled_fields(text)
    sepa = read_sepa_text([text]) if labels is None else Details()
    labels = labels or {}
    iban = _iban(labels.get("IBAN")) or _iban((labels.get("REK") or "").split("/")[0])
    written = clean_purpose(labels.get("OMSCHRIJVING") or sepa.purpose or text)
    return sepa._replace(
        counterpart_name=clean(labels.get("NAAM")) or sepa.counterpart_name,
        counterpart_iban=iban or sepa.counterpart_iban,
        counterpart_bic=parse_bic(labels.get("BIC")) or sepa.counterpart_bic,
        creditor_id=parse_creditor_id(labels.get("INCASSANT")) or sepa.creditor_id,
        mandate_reference=clean_key(labels.get("MACHTIGING")) or sepa.mandate_reference,
        end_to_end_id=clean_key(labels.get("KENMERK")) or sepa.end_to_end_id,
        purpose=written or clean_purpose(join_lines(supplement)),
        bank_text=_bank_text(supplement),
    )


def _labelled_fields(text: str) -> dict[str, str] | None:
    pieces = _LABELS.split(text)
    if len(pieces) < 5:  # a single label may be a word of the text
        return None
    fields: dict[str, str] = {}
    for key, content in zip(pieces[1::2], pieces[2::2], strict=True):
        fields.setdefault(key, content.strip(" /"))
    return fields


def _non_swift_details(lines: Iterable[str]) -> Details:
    """The details in :NS: of German programs: two digits before each line, 01-14 purpose, 15-16 name, 17 the bank's
    text."""
    parts: dict[str, list[str]] = {}
    for line in lines:
        code, content = line[:2], line[2:]
        kind = "purpose" if "01" <= code <= "14" else {"15": "name", "16": "name", "17": "bank"}.get(code)
        if kind and code.isdigit():
            parts.setdefault(kind, []).append(content)
    return Details(
        counterpart_name=clean(" ".join(parts.get("name", []))),
        purpose=clean_purpose(*parts.get("purpose", [])),
        bank_text=clean(" ".join(parts.get("bank", []))),
    )


def _account(supplement: Sequence[str], customer: str) -> str | None:
    """The counterpart's IBAN from the :61: itself, or from its supplementary line (Rabobank); None where there is
    none."""
    return _iban(customer) or next((iban for line in supplement if (iban := _iban(line))), None)


def _bank_text(supplement: Sequence[str]) -> str | None:
    """The supplementary lines of :61:, except those with codes (/TRCD/00100/, /OCMT/EUR12,00/) or an account."""
    return clean(join_lines(line for line in supplement if not line.lstrip().startswith("/") and not _iban(line)))


def _iban(text: str | None) -> str | None:
    compact = "".join((text or "").split())
    return parse_iban(compact) if 15 <= len(compact) <= 34 else None
