"""Account and creditor numbers that no bank has assigned but whose check digits are right."""

from functools import cache
from hashlib import blake2b


def iban(country: str, bban: str) -> str:
    """A made-up IBAN in compact form, with check digits by ISO 7064 MOD 97-10 for this country and account number
    (BBAN)."""
    return f"{country}{_check_digits(bban + country)}{bban}"


def creditor_id(national: str) -> str:
    """A made-up German creditor identifier; the check digits do not cover its business code ZZZ (EPC262-08)."""
    return f"DE{_check_digits(national + 'DE')}ZZZ{national}"


@cache
def german_iban(bank_code: str, *words: str) -> str:
    """A made-up IBAN at the bank with this code; always the same for the same words, which stand for an account or its
    owner."""
    return iban("DE", f"{bank_code}{digits(10, *words)}")


@cache
def digits(count: int, *words: str) -> str:
    """A made-up number of so many digits (the first one not 0) that depends only on the words."""
    number = int.from_bytes(blake2b("|".join(words).encode(), digest_size=16).digest())
    return str(10 ** (count - 1) + number % (9 * 10 ** (count - 1)))


def _check_digits(text: str) -> str:
    number = int("".join(str(int(character, 36)) for character in text + "00"))
    return f"{98 - number % 97:02d}"
