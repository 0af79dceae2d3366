"""Bookings compared by joins of their keys first are explained by the same rows as one by one."""

import json
from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from storage.importing.matching.certain_matches import certain, left_over, numbered, prepared, undecided
from storage.importing.matching.compared_rows import Item, StoredRow
from storage.importing.matching.counted_merge import match_booked
from storage.importing.matching.stored_bookings import STORED
from storage.importing.matching.stored_index import FILES
from storage.importing.records import TransactionRecord
from storage.importing.spool import Spool
from tests.storage.test_matching_agrees import BANK, NAMED, RECORDS, items, rows

IDS = st.lists(st.sampled_from([None, "txn_" + "0" * 32, "txn_" + "1" * 32]), min_size=8, max_size=8)


def keys_of(records: Sequence[TransactionRecord]) -> pl.DataFrame:
    """What a spool keeps of these bookings in memory."""
    spool = Spool()
    for record in records:
        spool.add(record)
    return spool.keys([range(len(records))])


def stored_frame(stored: Sequence[StoredRow]) -> pl.DataFrame:
    """The rows as STORED; all that they are claimed by stands in JSON."""
    ordered = sorted(stored, key=lambda row: (len(row.identity), row.identity))
    return pl.DataFrame(
        [
            {
                **{name: getattr(row, name) for name in ("id", "identity", "booking_date", "amount", "currency")},
                "created_at": row.created_at,
                "claim": None,
                "told_print": None,
                "claims": json.dumps(dict(row.claims)) if row.claims else None,
                "is_part": any("/" in reference for reference in row.references),
            }
            for row in ordered
        ],
        schema=STORED,
    )


def explained(records: Sequence[TransactionRecord], stored: Sequence[StoredRow], source: str) -> list[str | None]:
    """The row of each booking: by joins where they tell, else one by one."""
    told, frame = prepared(keys_of(records), source), stored_frame(stored)
    known = certain(told, frame, source)
    rest, maybe = undecided(*left_over(told, frame, known), source)
    found = dict(known.iter_rows())
    by_id = {row.id: row for row in stored}
    one_by_one = [
        Item(records[place], place, base, print_, claim)
        for place, base, print_, claim in rest.select("place", "base", "fingerprint", "claim").iter_rows()
    ]
    for match in match_booked(one_by_one, [by_id[id_] for id_ in maybe["id"]], [], source=source):
        if match.stored:
            found[match.item.place] = match.stored.id
    return [found.get(place) for place in told["place"]]


@pytest.mark.requirement("import.any-order")
@settings(max_examples=300, deadline=None)
@given(records=RECORDS, told=RECORDS, named=NAMED, ids=IDS, source=st.sampled_from([BANK, FILES]))
def test_joins_and_one_by_one_find_the_rows_that_one_by_one_finds(
    records: list[TransactionRecord],
    told: list[TransactionRecord],
    named: list[str | None],
    ids: list[str | None],
    source: str,
) -> None:
    own = [
        replace(record, references=(id_, *record.references)) if id_ else record
        for record, id_ in zip(records, ids, strict=False)
    ]
    once = [own[place] for place in prepared(keys_of(own), source)["place"]]
    stored = rows(told, named, "txn_" + "0" * 31)
    matches = match_booked(items(once, source), stored, [], source=source)
    assert explained(once, stored, source) == [match.stored and match.stored.id for match in matches]


@pytest.mark.requirement("import.any-order")
@settings(max_examples=200, deadline=None)
@given(records=RECORDS, told=RECORDS, named=NAMED)
def test_keys_and_identities_are_those_of_the_obvious_way(
    records: list[TransactionRecord], told: list[TransactionRecord], named: list[str | None]
) -> None:
    without_ids = [replace(record, provider_id=None) for record in records]
    compared = prepared(keys_of(without_ids), FILES)
    assert compared["base"].to_list() == [item.base for item in items(without_ids, FILES)]
    stored = rows(told, named)
    identities = numbered(compared, stored_frame(stored)).to_list()
    assert len({*identities, *(row.identity for row in stored)}) == len(identities) + len(stored)
    assert [identity.rpartition("#")[0] for identity in identities] == compared["base"].to_list()
