"""German account numbers: the IBAN of a bank code and number, where it is certain."""

import re

import schwifty

from analytics.records import AccountRecord

NUMBER = re.compile(r"(\d{8})/(\d{1,10})")  # bank code and account number, as MT940 and OFX write them
SUB_ACCOUNT_BANKS = "478"  # fourth digit of the bank code: Commerzbank, Deutsche Bank, Dresdner Bank
SUB_ACCOUNT_DIGITS_MIN = 9  # their shorter numbers lack the two digits of a sub-account (Bundesbank, IBAN rules 5, 20)
OWN_RULES = re.compile("unicredit|hypovereinsbank", re.IGNORECASE)  # IBAN rule 22 replaces bank codes


def bank_code(account: AccountRecord) -> str | None:
    """The German bank code in the account's key; None where it has none."""
    match = NUMBER.fullmatch(account.stable_key)
    return match[1] if match else None


def iban_of(written: str) -> str | None:
    """The IBAN of bank code and account number, written "12345678/123", if the Bundesbank's registry has the bank, the
    number passes the bank's check digits and is not too short to be the whole one, and the bank does not make its IBANs
    by rules of its own; else None."""
    match = NUMBER.fullmatch(written)
    if match is None:
        return None
    code, number = match.groups()
    if code[3] in SUB_ACCOUNT_BANKS and len(number) < SUB_ACCOUNT_DIGITS_MIN:
        return None
    try:
        made = schwifty.IBAN(schwifty.IBAN.generate("DE", code, number), validate_bban=True)
    except ValueError:
        return None
    if not made.bank_name or OWN_RULES.search(made.bank_name) or not int(number):
        return None
    return str(made)
