"""Bank names by IBAN, bank code or BIC, from the registries in schwifty, for sources that do not state them."""

from collections.abc import Iterator
from functools import lru_cache

import schwifty
from msgspec.structs import replace

from analytics.records import AccountRecord, Record, StatementRecord
from connectors.reference import german_accounts

BANK_DIGITS_MAX = 12  # country, check digits and bank code of every country with a registry in schwifty
CACHED_BANKS_MAX = 4096
GERMAN_IBAN_LENGTH = 22


def with_bank_names(records: Iterator[Record]) -> Iterator[Record]:
    """The records with additions from the registries: an IBAN for accounts whose bank code and number determine it, and
    missing bank names of accounts and counterparts."""
    for record in records:
        if isinstance(record, StatementRecord):
            yield record
        elif isinstance(record, AccountRecord):
            iban = record.iban or german_accounts.iban_of(record.stable_key)
            yield replace(record, iban=iban, bank_name=record.bank_name or _bank_of(record))
        else:
            name = bank_name(record.counterpart_iban) if record.counterpart_bank_name is None else None
            yield replace(record, counterpart_bank_name=name) if name else record


def bank_name(iban: str | None) -> str | None:
    """The name of the bank that keeps this account; None where no registry has it."""
    compact = "".join((iban or "").split()).upper()
    if len(compact) <= BANK_DIGITS_MAX:
        return None
    # Registries are sorted by bank code, so the answer for one account holds for all; the check digits do not matter
    return _of_bank(compact[:2] + "00" + compact[4:BANK_DIGITS_MAX], len(compact))


def _bank_of(account: AccountRecord) -> str | None:
    code = german_accounts.bank_code(account)
    return (
        bank_name(account.iban)
        or (_of_bank(f"DE00{code}", GERMAN_IBAN_LENGTH) if code else None)
        or _of_bic(account.bic)
    )


def _of_bic(bic: str | None) -> str | None:
    """The name of the bank with this BIC; None where the registries have no name for it, or several."""
    names = set(schwifty.BIC(bic, allow_invalid=True).bank_names) if bic else set()
    return str(names.pop()) if len(names) == 1 else None


@lru_cache(maxsize=CACHED_BANKS_MAX)
def _of_bank(beginning: str, length: int) -> str | None:
    try:
        name = schwifty.IBAN(beginning.ljust(length, "0"), allow_invalid=True).bank_name
    except (ValueError, KeyError, IndexError):
        return None
    return str(name) if name else None
