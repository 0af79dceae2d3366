"""Bank names by IBAN, from the registries that schwifty ships: where a source does not name the bank itself."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import schwifty

from storage.importing.records import AccountRecord, Record, StatementRecord

BANK_DIGITS_MAX = 12  # country, check digits and bank code of every country schwifty knows a registry of
CACHED_BANKS_MAX = 4096


def with_bank_names(records: Iterator[Record]) -> Iterator[Record]:
    """The same records; accounts and counterparts that have an IBAN and no bank name get it from the registry."""
    for record in records:
        if isinstance(record, StatementRecord):
            yield record
        elif isinstance(record, AccountRecord):
            name = bank_name(record.iban) if record.bank_name is None else None
            yield replace(record, bank_name=name) if name else record
        else:
            name = bank_name(record.counterpart_iban) if record.counterpart_bank_name is None else None
            yield replace(record, counterpart_bank_name=name) if name else record


def bank_name(iban: str | None) -> str | None:
    """The bank that keeps this account, None where no registry says so."""
    compact = "".join((iban or "").split()).upper()
    if len(compact) <= BANK_DIGITS_MAX:
        return None
    # Registries go by bank code, so one account answers for all; the check digits play no part
    return _of_bank(compact[:2] + "00" + compact[4:BANK_DIGITS_MAX], len(compact))


@lru_cache(maxsize=CACHED_BANKS_MAX)
def _of_bank(beginning: str, length: int) -> str | None:
    try:
        found = schwifty.IBAN(beginning.ljust(length, "0"), allow_invalid=True).bank_name
    except (ValueError, KeyError, IndexError):
        return None
    return str(found) if found else None
