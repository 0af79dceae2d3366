"""The name of a shop as a person would write it: without slip noise, store numbers, legal form and capitals
throughout."""

import re

from analytics.classification.phrases import words_of

NAME_LENGTH_MAX = 60
SLIP_NOISE = re.compile(  # the texts around the shop's name on card slips
    r"\bp[oô]s\s+[\d.,]+\s+[a-z]{2}\b|"
    r"\b(?:kartenzahlung|karteneinsatz|girocard|visa debit|visa|mastercard|maestro|debitkarte|debit card|"
    r"card payment(?: to)?|recurring payment authorized on|pos withdrawal|check card|"
    r"card purchase|checkcard|(?:visa/)?dankort(?:-nota)?|varek[jø]+p|kortk[øöo]+[pb]|korttiosto|platba kartou|"
    r"facture carte(?: du \d+)?|paiement cb|cb|compra tarj\.?|pago en|tarj\.?|pagamento(?: pos)?|"
    r"kauf/dienstleistung(?: vom)?|karten nr\.? \S+|"
    r"purchase authorized on|pos purchase|pos debit|pos|bea|betaalpas|debit|purchase|apple pay|"
    r"google pay|contactless|bancontact|paiement(?: par)? carte|carte|achat cb|ec|lastschrift|debitk|nr:?\S*)\b[:,.]?|"
    r"\b\d{1,4}[./-]\d{1,2}[./-]\d{0,4}\S*|\b\d{1,2}[:.]\d{2}(?:[:.]\d{2})?\b|\b\d+,\d\d\b|\bk\d\b",
    re.IGNORECASE,
)
SLIP_HEAD = re.compile(
    r"(?:kartenzahlung|karteneinsatz|girocard|visa (?:debit|purchase)|debit card|card (?:payment|purchase)|check ?card|"
    r"(?:recurring )?(?:payment|purchase) authorized|pos(?: debit| purchase)?\s|debit purchase|purchase\s|bea\b|"
    r"betaalpas|"
    r"paiement|facture carte|achat cb|cb\s|carte\s|pagamento|pago|compra\s|contactless|point of sale|"
    r"(?:visa/)?dankort|varek|korttiosto|platba kartou)",
    re.IGNORECASE,
)
LEGAL_TAIL = re.compile(
    r"(?<![\s,])[\s,]++(?:gmbh\s*(?:&|und|\+)\s*co\.?\s*kg(?:aa)?|gmbh|mbh|ag|kg|kgaa|se|ohg|ug(?:\s*\(haftungsbeschränkt\))?|e\.?\s?v\.?|eg|"
    r"b\.?v\.?|n\.?v\.?|ltd\.?|limited|plc|inc\.?|llc|s\.?a\.?r\.?l\.?|s\.?a\.?s\.?|s\.?a\.?|s\.?r\.?l\.?|s\.?p\.?a\.?|oy|ab)\.?$",
    re.IGNORECASE,
)
_SMALL = (
    "am an and auf bei beim das de den der des die du et for im in la le les of the to und van vom von zu zum zur &"
)
SMALL_WORDS = frozenset(_SMALL.split())
_GREETING = re.compile(r"(?<!\s)\s++(?:sagt danke|dankt)\b.*$", re.IGNORECASE)
_STATES = (
    "AL|AK|AZ|AR|CA|CO|CT|DC|DE|FL|GA|HI|ID|IL|IN|IA|KS|KY|LA|ME|MD|MA|MI|MN|MS|MO|MT|NE|NV|NH|NJ|NM|NY|NC|ND|OH|OK|OR|"
    "PA|RI|SC|SD|TN|TX|UT|VT|VA|WA|WV|WI|WY"
)
_COUNTRY = re.compile(rf"(?<!\s)\s++(?:NLD|DEU|AUT|CHE|GBR|BEL|FRA|LUX|USA|(?:{_STATES})(?: \d{{2,5}})?)$")


_PARTING = re.compile(r"[*_|]+")
_NUMBERED = re.compile(r"(?<!\s)\s++(?=\S*\d\S*\d)\S{4,}.*$")  # 65705220764, 11O0XTUL and everything after it
_REFERENCE = re.compile(r"^[A-Z]?\d{4,}\s+(?=[A-Z])")  # D5438 SQ *BLUE DOOR: the card's number before the shop


def without_reference(label: str) -> str:
    """The label without a card or terminal number at its beginning."""
    return _REFERENCE.sub("", label)


def is_slip(label: str) -> bool:
    """Whether a counterpart's name begins with the words of a card slip, so that all of it is the text of a slip:
    "CHECKCARD 0105 SHELL OIL 57442", "CARD PAYMENT TO TESCO"."""
    return SLIP_HEAD.match(label) is not None


def slip_text(purpose: str) -> str:
    """The text of a card slip, up to "//", without the words for card and terminal, dates, times and amounts."""
    return " ".join(SLIP_NOISE.sub(" ", purpose.split("//")[0]).split())


def tidy(label: str) -> str:
    """A shop's name without greeting, country, store number (and what follows it) and legal form, cut at
    NAME_LENGTH_MAX; where all letters are capitals, or none is, words begin with one."""
    text = _PARTING.sub(" ", label).strip(" .,;:-/")
    text = _COUNTRY.sub("", _GREETING.sub("", text))
    text = _NUMBERED.sub("", text)
    text = LEGAL_TAIL.sub("", " ".join(text.split())).strip(" .,;:-/")
    if text.isupper() or text.islower():
        text = " ".join(_capitalise(word, index) for index, word in enumerate(text.lower().split()))
    return text[:NAME_LENGTH_MAX].strip()


def _capitalise(word: str, index: int) -> str:
    if index and word in SMALL_WORDS:
        return word
    return "-".join(part[:1].upper() + part[1:] for part in word.split("-"))


def before_number(text: str) -> str:
    """The first run of words without digits, five at most: on a slip, the shop comes before terminal, date and card
    numbers."""
    kept: list[str] = []
    for word in text.replace(",", " ").split():
        if any(c.isdigit() for c in word):
            if kept:
                break
            continue
        kept.append(word)
    return " ".join(kept[:5])


def without_words(label: str, count: int) -> str:
    """The label after its first `count` folded words; empty where it has no more."""
    ends = (cut for cut, after in enumerate(label) if not after.isalnum() and len(words_of(label[:cut])) >= count)
    return label[next(ends, len(label)) :].lstrip(" *_.-:/")
