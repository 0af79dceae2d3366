"""A person of this household as a source: what their own banks and files have told about accounts that they share.

What may be read is handed to it; it turns that into batches as any other source yields them. Everything stays as it was
told but three things: the account has one name and key, the giver's, whatever each bank or file called it; ids that
this service gave the giver's bookings are foreign ones here; and no words of the giver come along.
"""

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from analytics.records import AccountRecord, Batch, Record, TransactionRecord
from connectors.connector import Connector

BANKS, FILES = "household", "household-files"  # connections of what banks and of what files have told the giver
_OWN_ID = re.compile(r"txn(_?[0-9a-f]{32})")


class Household(Connector):
    """The connection to a person of this household, which is handed what there is and never asked."""

    is_local = True
    unattended_syncs_max = None

    def __init__(self, name: str) -> None:
        self.name = name


class ToldOnce(Struct, frozen=True):
    """What one import has told the giver about one account: `id` is its own and never that of anything else."""

    id: str
    records: Iterable[Record]


def batches(told: Iterable[ToldOnce], *, account: AccountRecord) -> Iterator[Batch]:
    """A batch for everything that was told about one shared account, which is described by `account`."""
    for each in told:
        yield Batch(id=each.id, records=_records(each.records, account), cursor=None)


def account_of(told: AccountRecord, *, key: str, iban: str | None, giver: str) -> AccountRecord:
    """The shared account, as `told` by the giver's bank, under a lasting `key`, with the giver behind its name."""
    name = f"{told.name or told.bank_name or told.stable_key} ({giver})"
    named = replace(told, is_anonymous=False, is_by_name=False, kept_for=None, part=0)
    return replace(named, stable_key=key, iban=iban, name=name)


def _records(records: Iterable[Record], account: AccountRecord) -> Iterator[Record]:
    for record in records:
        match record:
            case AccountRecord():
                yield account
            case TransactionRecord():
                provider_id = _foreign(record.provider_id) if record.provider_id is not None else None
                references = tuple(map(_foreign, record.references))
                yield replace(record, provider_id=provider_id, references=references, words=None)
            case _:
                yield record


def _foreign(key: str) -> str:
    return _OWN_ID.sub(r"shr\1", key)
