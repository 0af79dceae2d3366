"""The SEPA keywords (EREF+, MREF+, CRED+, SVWZ+ ...) that German banks write into the text of a booking."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from connectors.text import clean, clean_key, clean_purpose, parse_bic, parse_creditor_id, parse_iban

_PIECE_CHARACTERS = 27  # of a subfield ?20 to ?29 (DFUE-Abkommen, annex 3)
_KEYWORDS = "EREF|KREF|MREF|CRED|DEBT|COAM|OAMT|SVWZ|ABWA|ABWE|IBAN|BIC|BREF|RREF|RTRN|ANAM|PURP|SQTP|ORCR|DDAT"
_KEYWORD = re.compile(rf"(?:^|(?<=[\s?\n]))({_KEYWORDS})\+")
_LABEL = re.compile(r"(?:^|\s)(EREF|MREF|CRED|IBAN|BIC):\s*")
_LABEL_START = re.compile(rf"(?:{_KEYWORDS})[+:]")


class Details(NamedTuple):
    """The facts in the text of a booking, as far as it has them; the fields are those of `TransactionRecord`."""

    counterpart_name: str | None = None
    counterpart_iban: str | None = None
    counterpart_bic: str | None = None
    creditor_id: str | None = None
    debitor_id: str | None = None
    mandate_reference: str | None = None
    end_to_end_id: str | None = None
    purpose: str | None = None
    purpose_code: str | None = None
    gvc: str | None = None
    bank_text: str | None = None
    is_return: bool = False


def read_sepa_text(pieces: Sequence[str]) -> Details:
    """The values in the subfields of one remittance text, given in order; a text without keywords is all purpose."""
    text = _join_pieces(pieces)
    parts = _KEYWORD.split(text)
    if len(parts) == 1:
        return _read_labels(text)
    fields: dict[str, str] = {}
    for keyword, content in zip(parts[1::2], parts[2::2], strict=True):
        fields[keyword] = fields.get(keyword, "") + content
    purpose = clean_purpose(parts[0], fields.get("SVWZ"))
    return Details(
        purpose=purpose,
        end_to_end_id=clean_key(fields.get("EREF")),
        mandate_reference=clean_key(fields.get("MREF")),
        creditor_id=parse_creditor_id(fields.get("CRED")),
        debitor_id=clean_key(fields.get("DEBT")),
        purpose_code=read_purpose_code(fields.get("PURP")),
        counterpart_iban=parse_iban(_compact(fields.get("IBAN"))),
        counterpart_bic=parse_bic(_compact(fields.get("BIC"))),
        # ABWA and ABWE: the actual payer or payee
        counterpart_name=clean(fields.get("ABWA")) or clean(fields.get("ABWE")) or clean(fields.get("ANAM")),
        is_return="RTRN" in fields,
    )


def _join_pieces(pieces: Sequence[str]) -> str:
    """The subfields as one text: a full piece continues without a break, a short one ended by itself, a keyword begins
    a new line."""
    text = ""
    was_full = True
    for piece in pieces:
        if text and _LABEL_START.match(piece):
            text += "\n"
        elif text and not was_full:
            text += " "
        text += piece
        was_full = len(piece) >= _PIECE_CHARACTERS
    return text


def _read_labels(text: str) -> Details:
    """The values of labels as cooperative banks write them ("EREF: .. IBAN: .."); the purpose keeps the whole text."""
    parts = _LABEL.split(text)
    fields = {key: content.split() for key, content in zip(parts[1::2], parts[2::2], strict=True)}
    words = {key: content[0] for key, content in fields.items() if content}
    return Details(
        purpose=clean_purpose(text),
        end_to_end_id=clean_key(words.get("EREF")),
        mandate_reference=clean_key(words.get("MREF")),
        creditor_id=parse_creditor_id(words.get("CRED")),
        counterpart_iban=parse_iban(words.get("IBAN")),
        counterpart_bic=parse_bic(words.get("BIC")),
    )


def _compact(text: str | None) -> str | None:
    return "".join(text.split()) if text else None


def read_purpose_code(text: str | None) -> str | None:
    """The purpose code at the beginning of a text, four capital letters; None where it begins with anything else."""
    code = (text or "").strip()[:4]
    return code if len(code) == 4 and code.isalpha() and code.isupper() else None
