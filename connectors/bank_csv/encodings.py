"""The code page of a file that is not UTF-8, told by the words that its bytes make.

Under an ASCII header every code page reads the table, and only one makes words: "Z³oty" has no letter where "Złoty" has
one. A decoding counts by the share of its letters beyond ASCII that one language has; between those that are equally
good decide countries of IBANs and names of columns, then currencies.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from connectors.bank_csv.profile import comparable

_LANGUAGES: Sequence[tuple[tuple[str, ...], str, tuple[str, ...]]] = (
    (("cp1252", "cp850", "mac-roman"), "äöüßé", ("EUR", "CHF")),
    (("cp1252", "cp850", "mac-roman"), "àâæçèéêëîïôœùûü", ("EUR", "CHF", "CAD")),
    (("cp1252", "cp850", "mac-roman"), "áéíñóúüçàòèïºª", ("EUR", "MXN", "ARS", "CLP", "COP")),
    (("cp1252", "cp850", "mac-roman"), "áàâãçéêíóôõúüºª", ("EUR", "BRL")),
    (("cp1252", "cp850", "mac-roman"), "àèéìíîòóùú", ("EUR", "CHF")),
    (("cp1252", "cp850", "mac-roman"), "æøåäöéüó", ("DKK", "NOK", "SEK")),
    (("cp1252", "cp850"), "áðéíóúýþæö", ("ISK",)),
    (("cp1252", "cp1257"), "äöõüšž", ("EUR", "EEK")),
    (("cp1250", "iso8859-2", "cp852"), "ąćęłńóśźż", ("PLN",)),
    (("cp1250", "iso8859-2", "cp852"), "áčďéěíňóřšťúůýž", ("CZK",)),
    (("cp1250", "iso8859-2", "cp852"), "áäčďéíĺľňóôŕšťúýž", ("EUR", "SKK")),
    (("cp1250", "iso8859-2", "cp852"), "áéíóöőúüű", ("HUF",)),
    (("cp1250", "iso8859-2", "cp852"), "čćđšž", ("HRK", "RSD", "BAM")),
    (("cp1250", "iso8859-2", "cp852"), "ăâîşţșț", ("RON",)),
    (("cp1251",), "абвгдеёжзийклмнопрстуфхцчшщъыьэюяіїєґђјљњћџўѓќѕ№", ("RUB", "UAH", "BGN", "RSD")),
    (("cp1253",), "αβγδεζηθικλμνξοπρστυφχψωάέήίόύώϊϋς", ("EUR",)),
    (("cp1254",), "çğıöşüâî", ("TRY",)),
    (("cp1257",), "ąčęėįšųūž", ("EUR", "LTL")),
    (("cp1257",), "āčēģīķļņšūž", ("EUR", "LVL")),
)  # fmt: skip
_SPOKEN_IN = {
    "CHF": {"DE", "AT", "CH", "IT", "betrag", "buchung", "buchungstag", "importo", "causale", "descrizione"},
    "CAD": {"FR", "BE", "LU", "libelle", "montant", "compte", "operation"},
    "MXN": {"ES", "fecha", "importe", "concepto", "cuenta"},
    "DKK": {"DK", "NO", "SE", "dato", "belob", "belop", "tekst", "bokforingsdag"},
    "PLN": {"PL", "kwota", "tytul", "odbiorca", "nadawca", "opis", "waluta"},
    "CZK": {"CZ", "castka", "popis", "zprava", "mena", "protiucet"},
    "SKK": {"SK", "popis", "mena", "protiucet"},
    "HUF": {"HU", "osszeg", "kozlemeny", "konyveles", "penznem", "egyenleg", "szamla", "szamlaszam"},
    "HRK": {"HR", "RS", "BA", "SI", "iznos", "znesek", "opis", "stanje"},
    "RON": {"RO", "descriere"},
    "BRL": {"BR", "PT", "valor", "montante", "descricao", "historico", "lancamento"},
    "EEK": {"EE", "kuupaev", "summa", "selgitus", "saaja"},
}
"""Countries of IBANs, and folded names of columns, that go with the language of one of these currencies."""
_ENCODINGS = ("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1257", "cp850", "cp852", "iso8859-2", "mac-roman")
"""From the likeliest on: of two that make equally good words the first counts."""
_CURRENCY_DECIDES = ("ISK", "TRY")  # Icelandic and Turkish share their bytes
_WORD = re.compile(rb"[A-Za-z\x80-\xff]+")
_NAME = re.compile(r"\w+")
_WORDS_MAX = 2_000  # of the head; more would show no more
_COUNTRY = re.compile(rb"(?<![A-Z0-9])([A-Z]{2})\d{2}(?: ?[A-Z0-9]{4}){3}")  # of an IBAN
_CODE = re.compile(rb"(?<![A-Z])[A-Z]{3}(?![A-Z])")
DEFAULT = "cp1252"


def likeliest_encoding(head: bytes) -> str:
    """The code page by which the words of the lines that are not UTF-8 are best read; cp1252 where none is better."""
    return _likeliest(head)[0]


def other_reading(head: bytes) -> tuple[str, str] | None:
    """A word as it is read by the likeliest code page, and by another one of Windows that nothing says to be less
    likely; None where there is none, and of UTF-16, which no code page is."""
    if b"\0" in head:
        return None
    best, *equals = _likeliest(head)
    others = [each for each in equals if each.startswith("cp125")]
    for word in filter(_is_counted, _words(head)) if others else ():
        read = word.decode(best, "replace")
        for other in others:
            if (otherwise := word.decode(other, "replace")) != read:
                return read, otherwise
    return None


def _likeliest(head: bytes) -> list[str]:
    """The code pages that make equally good words, the likeliest first."""
    words = _words(head)
    if not words:
        return [DEFAULT]
    codes = {code.decode() for code in _CODE.findall(head)}
    said = {country.decode() for country in _COUNTRY.findall(head)}
    said.update(_NAME.findall(comparable(head.decode("cp1252", "replace"))))
    best, best_score = [DEFAULT], (0.0, False, False)
    for encoding in _ENCODINGS:
        for encodings, letters, currencies in _LANGUAGES:
            is_likely = bool(codes.intersection(currencies))
            if encoding not in encodings or (currencies[0] in _CURRENCY_DECIDES and not is_likely):
                continue
            is_spoken = any(not said.isdisjoint(_SPOKEN_IN.get(each, ())) for each in currencies)
            score = (_share_of_letters(words, encoding, letters), is_spoken, is_likely)
            if score > best_score:
                best, best_score = [encoding], score
            elif score == best_score and score[0]:
                best.append(encoding)
    return best


def _words(head: bytes) -> Counter[bytes]:
    return Counter(word for line in head.split(b"\n") for word in _foreign_words(line))


def _is_counted(word: bytes) -> bool:
    return len(word) > 1  # what stands alone is a sign, such as the euro


def _foreign_words(line: bytes) -> Iterator[bytes]:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        yield from (word for word in _WORD.findall(line)[:_WORDS_MAX] if not word.isascii())


def _share_of_letters(words: Counter[bytes], encoding: str, letters: str) -> float:
    """The share of the characters beyond ASCII in these words that are letters of a language, in lower case or where a
    capital may stand, and beside no letters of another script."""
    good = count = 0
    is_latin = letters[0] not in "аα"
    for raw, times in words.items():
        word = raw.decode(encoding, "replace")
        is_mixed = not is_latin and any(letter.isascii() for letter in word)
        for place, letter in enumerate(word):
            if letter.isascii() or not _is_counted(raw):
                continue
            is_capital_inside = letter.isupper() and place > 0 and not word.isupper()
            is_end_inside = letter == "ς" and place < len(word) - 1
            count += times
            good += times * (letter.lower() in letters and not (is_capital_inside or is_end_inside or is_mixed))
    return good / count if count else 0.0
