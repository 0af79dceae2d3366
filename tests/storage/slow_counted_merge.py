"""The counted merge in the obvious way: every record is compared with every stored row, one after the other."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal

from storage.importing.matching.booking_keys import PROVIDER, fingerprint, own_id, plain, squeezed
from storage.importing.matching.compared_rows import StoredRow
from storage.importing.matching.similar_texts import SHARED_WORDS_MIN
from storage.importing.matching.stored_index import FILES, PENDING_DAYS_MAX
from storage.importing.records import TransactionRecord

Rows = list[StoredRow]
Way = Callable[[TransactionRecord, Rows], StoredRow | None]


def explained(records: Sequence[TransactionRecord], stored: Rows, pending: Rows, source: str) -> list[str | None]:
    """For each booked record the id of the row it is, None for a new one."""
    keys = dict(zip(map(id, records), base_keys(records), strict=True))
    free, waiting = _in_order(stored), _in_order(pending)
    found: dict[int, StoredRow] = {}

    def attempt(rows: Rows, *ways: Way) -> None:
        for way in ways:
            for index, record in enumerate(records):
                if index not in found and (row := way(record, rows)) is not None:
                    found[index] = row
                    rows.remove(row)

    by_key = _by_key(keys, source)
    attempt(free, _by_own_id, by_key)
    if stored:
        _parts(records, found, free)
    claimable = _claimable(source)
    attempt(free, _by_reference(claimable), _by_content(claimable), _by_counterpart(source))
    attempt(waiting, _by_own_id, by_key, _by_content(claimable), _nearest(-1))
    return [found[index].id if index in found else None for index in range(len(records))]


def still_pending(records: Sequence[TransactionRecord], pending: Rows, booked: Rows, source: str) -> list[str | None]:
    """The same for records that are pending; those that have booked since are left out."""
    keys = dict(zip(map(id, records), base_keys(records), strict=True))
    free, done = _in_order(pending), _in_order(booked)
    ways = (_by_own_id, _by_key(keys, source), _by_content(_claimable(source)))
    rows: dict[int, StoredRow] = {}
    over: set[int] = set()
    for way in ways:
        for index, record in enumerate(records):
            if index not in rows and (row := way(record, free)) is not None:
                rows[index] = row
                free.remove(row)
    for way in (*ways, _nearest(1)):
        for index, record in enumerate(records):
            if index not in rows and index not in over and (row := way(record, done)) is not None:
                over.add(index)
                done.remove(row)
    return [rows[index].id if index in rows else None for index in range(len(records)) if index not in over]


def base_keys(records: Sequence[TransactionRecord]) -> list[str]:
    uses = Counter(reference for record in records for reference in record.references)
    return [_base_key(record, uses) for record in records]


def _base_key(record: TransactionRecord, uses: Counter[str]) -> str:
    if record.provider_id is not None:
        return f"{PROVIDER}{record.provider_id}"
    for reference in record.references:
        if uses[reference] == 1:
            return f"{reference}|{record.booking_date.isoformat()}|{plain(record.amount)}"
    return f"content:{fingerprint(record)}"


def _in_order(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: (len(row.identity), row.identity))


def _money(what: TransactionRecord | StoredRow) -> tuple[date, Decimal, str]:
    return what.booking_date, what.amount, what.currency


def _by_own_id(record: TransactionRecord, rows: Rows) -> StoredRow | None:
    return next((row for row in rows if row.id == own_id(record) and _money(row) == _money(record)), None)


def _by_key(keys: dict[int, str], source: str) -> Way:
    def way(record: TransactionRecord, rows: Rows) -> StoredRow | None:
        for row in rows:
            if record.provider_id is not None:
                is_it = f"{source}:{record.provider_id}" in row.claims and (
                    source != FILES or _money(row) == _money(record)
                )
            else:
                is_it = row.identity.rpartition("#")[0] == keys[id(record)] and row.currency == record.currency
            if is_it:
                return row
        return None

    return way


def _claimable(source: str) -> Callable[[TransactionRecord, StoredRow], bool]:
    def claimable(record: TransactionRecord, row: StoredRow) -> bool:
        return record.provider_id is None or not any(claim.startswith(f"{source}:") for claim in row.claims)

    return claimable


def _by_reference(claimable: Callable[[TransactionRecord, StoredRow], bool]) -> Way:
    def way(record: TransactionRecord, rows: Rows) -> StoredRow | None:
        if record.provider_id is None:
            return None
        for reference in record.references:
            for row in rows:
                if reference in row.references and _money(row) == _money(record) and claimable(record, row):
                    return row
        return None

    return way


def _by_content(claimable: Callable[[TransactionRecord, StoredRow], bool]) -> Way:
    def way(record: TransactionRecord, rows: Rows) -> StoredRow | None:
        for row in rows:
            if (
                row.fingerprint == fingerprint(record)
                and claimable(record, row)
                and not _contradict(record.references, row.references)
            ):
                return row
        return None

    return way


def _by_counterpart(source: str) -> Way:
    def may_be(record: TransactionRecord, row: StoredRow) -> bool:
        if any(claim.startswith(f"{source}:") for claim in row.claims):
            return False
        return record.provider_id is not None or (row.source != source and not _one_kind(record, row))

    def way(record: TransactionRecord, rows: Rows) -> StoredRow | None:
        for row in rows:
            if _money(row) == _money(record) and may_be(record, row) and _same_party(record, row):
                return row
        return None

    return way


def _one_kind(record: TransactionRecord, row: StoredRow) -> bool:
    kinds = {reference.partition(":")[0] for reference in record.references}
    return any(reference.partition(":")[0] in kinds for reference in row.references)


def _nearest(direction: int) -> Way:
    def way(record: TransactionRecord, rows: Rows) -> StoredRow | None:
        def days(row: StoredRow) -> int:
            return direction * (row.booking_date - record.booking_date).days

        alike = [
            row
            for row in rows
            if _money(row)[1:] == _money(record)[1:] and 0 <= days(row) <= PENDING_DAYS_MAX and _alike(record, row)
        ]
        return min(alike, key=days, default=None)

    return way


def _parts(records: Sequence[TransactionRecord], found: dict[int, StoredRow], free: Rows) -> None:
    groups: dict[tuple[str, date, str], list[int]] = defaultdict(list)
    for index, record in enumerate(records):
        if index in found:
            continue
        whole = next((part[0] for ref in record.references if (part := re.findall(r"^(.+)/\d+$", ref))), None)
        if whole is not None:
            groups[whole, record.booking_date, record.currency].append(index)
        else:
            _whole_of_parts(index, record, found, free)
    for (whole, day, currency), indexes in groups.items():
        amounts = [records[index].amount for index in indexes]
        if any(amount > 0 for amount in amounts) and any(amount < 0 for amount in amounts):
            continue
        for row in free:
            if _money(row) == (day, sum(amounts), currency) and whole in row.references:
                free.remove(row)
                found.update(dict.fromkeys(indexes, row))
                break


def _whole_of_parts(index: int, record: TransactionRecord, found: dict[int, StoredRow], free: Rows) -> None:
    for reference in record.references:
        rows = [
            row
            for row in free
            if (row.booking_date, row.currency) == (record.booking_date, record.currency)
            and any(re.fullmatch(re.escape(reference) + r"/\d+", each) for each in row.references)
        ]
        amounts = [row.amount for row in rows]
        is_mixed = any(amount > 0 for amount in amounts) and any(amount < 0 for amount in amounts)
        if rows and sum(amounts) == record.amount and not is_mixed:
            found[index] = rows[0]
            for row in rows:
                free.remove(row)
            return


def _contradict(ours: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    if not ours or not theirs or set(ours) & set(theirs):
        return False
    kinds = {reference.partition(":")[0] for reference in ours}
    return any(reference.partition(":")[0] in kinds for reference in theirs)


def _same_party(record: TransactionRecord, row: StoredRow) -> bool:
    if record.counterpart_iban and record.counterpart_iban == row.counterpart_iban:
        return True
    return bool(record.counterpart_name) and squeezed(record.counterpart_name) == squeezed(row.counterpart_name)


def _alike(record: TransactionRecord, row: StoredRow) -> bool:
    if _same_party(record, row):
        return True
    ours, theirs = _words(record), _words(row)
    shorter = min(len(ours), len(theirs))
    return shorter > 0 and len(ours & theirs) / shorter >= SHARED_WORDS_MIN


def _words(what: TransactionRecord | StoredRow) -> set[str]:
    text = f"{what.counterpart_name or ''}\n{what.purpose or ''}"
    return set(re.findall(r"[^\W\d_]{3,}", text.casefold()))
