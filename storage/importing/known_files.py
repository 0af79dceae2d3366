"""Files that come again, and need not be read again as long as that would change nothing.

Once a file is stored, its bookings are compared with the store once more, by their keys. Where each of them is known
and nothing would be written, a digest is kept of all that was looked at: which accounts the user has and how they are
found, what this file contributed, and the rows that its bookings may be. The same bytes, read in the same way and met
by the same digest, are the same import, whatever happened in between: nobody has to say that something has changed.
What the file says of balances is settled anew each time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from hashlib import blake2b, sha256

import msgspec

from storage.connections import StoredConnection
from storage.database import Session, Transaction, as_json
from storage.importing import contributions
from storage.importing.account_identity import NEW_ACCOUNT
from storage.importing.batches import AccountStatement, ReadBatch
from storage.importing.matching.stored_bookings import Reach, print_of
from storage.importing.records import AccountRecord, ReaderUsed, StatementRecord, TransactionRecord

IDENTIFYING = (
    "SELECT name FROM users WHERE id = $1",
    "SELECT id, connector FROM connections WHERE user_id = $1 ORDER BY id",
    "SELECT id, connection_id, stable_key, iban, name, kind, currency, bic, bank_name FROM accounts"
    " WHERE user_id = $1 ORDER BY id",
    "SELECT account_id, connection_id FROM account_sources WHERE user_id = $1 ORDER BY account_id, connection_id",
    "SELECT source_id, account_id FROM account_aliases WHERE user_id = $1 ORDER BY source_id",
)
"""What says whose account the account of a file is."""


class NoLongerKnown(Exception):
    """Something has changed since the file was imported: it has to be read."""


class SettledPart(msgspec.Struct, frozen=True):
    """What a file said of one account, all of it known: where that is kept (the sequence of a contribution), its
    statements by their places in the file, how many bookings are known, and among which rows they were found."""

    contribution: int
    account_id: str
    statements: list[int]
    known: int
    reach: Reach | None


class _Statement(msgspec.Struct, frozen=True):
    """An AccountStatement."""

    account: AccountRecord
    statement: StatementRecord
    bookings: int
    entries: int
    pending_entries: int
    booked_amount: Decimal
    first_day: date | None
    last_day: date | None


class _FileOutcome(msgspec.Struct, frozen=True):
    """All that is told of a file, and what it contributed; `day` is that of the import."""

    format: str | None
    day: date
    statements: list[_Statement]
    parts: list[SettledPart]


_written = msgspec.json.Encoder().encode
_outcome_of = msgspec.json.Decoder(_FileOutcome).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFile:
    """A file that need not be read again while the store is in this state; told like one that was (ReadBatch)."""

    id: str
    name: str | None
    format: str | None
    statements: list[AccountStatement]
    parts: list[SettledPart]
    state: str

    @property
    def warnings(self) -> list[str]:
        """A file with warnings is read again."""
        return []

    def first_records(self, session: Transaction, user_id: str, count: int) -> list[list[TransactionRecord]]:
        """The first bookings of each statement."""
        places = {}
        for part in self.parts:
            position = 0
            for number in part.statements:
                bookings = len(self.statements[number].places)
                places[number] = [(part.contribution, position + each) for each in range(min(count, bookings))]
                position += bookings
        found = contributions.bookings_at(session, user_id, [place for each in places.values() for place in each])
        return [[found[place] for place in places[number]] for number in range(len(self.statements))]


def find(
    session: Session,
    *,
    user_id: str,
    connection_id: str,
    id_: str,
    name: str | None,
    version: str,
    choice: str | None,
    today: date,
) -> KnownFile | None:
    """The file of these bytes, if it has been imported before in this way and changed nothing more."""
    rows = session.rows(
        "SELECT outcome, state FROM known_files WHERE user_id = $1 AND id = $2",
        user_id,
        _key(connection_id, id_, version, choice),
    )
    if not rows:
        return None
    outcome = _outcome_of(rows[0]["outcome"])
    if outcome.day > today:  # bookings may lie too far ahead on an earlier day
        return None
    return KnownFile(
        id=id_,
        name=name,
        format=outcome.format,
        statements=list(_statements(outcome.statements)),
        parts=outcome.parts,
        state=rows[0]["state"],
    )


def remember(
    session: Session,
    *,
    user_id: str,
    connection: StoredConnection,
    batch: ReadBatch,
    reading: ReaderUsed,
    choice: str | None,
    parts: Sequence[SettledPart],
) -> None:
    """The file has just been imported, and importing it again would change nothing: unless what it says depends on the
    day, as a warning does, or the balance of a file that does not date it."""
    depends_on_day = batch.warnings or any(each.statement.closing_date == batch.day for each in batch.statements)
    if depends_on_day or choice == NEW_ACCOUNT:
        return
    outcome = _FileOutcome(reading.format, batch.day, [_statement(each) for each in batch.statements], list(parts))
    session.execute(
        "INSERT INTO known_files (user_id, id, outcome, state) VALUES ($1, $2, $3, $4)"
        " ON CONFLICT (user_id, id) DO UPDATE SET outcome = excluded.outcome, state = excluded.state",
        user_id,
        _key(connection.id, batch.id, reading.version, choice),
        _written(outcome).decode(),
        _state(session, user_id, parts),
    )


def forget(session: Session, user_id: str, sequences: Sequence[int]) -> None:
    """These contributions are taken back, and what the files said that made them is kept no longer."""
    gone = {
        row["id"]
        for row in session.rows("SELECT id, outcome FROM known_files WHERE user_id = $1", user_id)
        if any(part.contribution in sequences for part in _outcome_of(row["outcome"]).parts)
    }
    session.execute("DELETE FROM known_files WHERE user_id = $1 AND id = ANY($2::TEXT[])", user_id, sorted(gone))


def check(session: Session, user_id: str, known: KnownFile) -> None:
    """Raises NoLongerKnown."""
    if _state(session, user_id, known.parts) != known.state:
        raise NoLongerKnown


def _state(session: Session, user_id: str, parts: Sequence[SettledPart]) -> str:
    """A digest of everything that the file would be compared with."""
    digest = blake2b(digest_size=16)
    for sql in IDENTIFYING:
        digest.update(_written(session.rows(sql, user_id)))
    contributed = session.rows(
        "SELECT sequence, job_id, connection_id, account_id, source_id, batch_id FROM contributions"
        " WHERE user_id = $1 AND sequence = ANY($2::BIGINT[]) ORDER BY sequence",
        user_id,
        [part.contribution for part in parts],
    )
    everywhere = session.rows(
        "SELECT DISTINCT batch_id, account_id, source_id FROM contributions"
        " WHERE user_id = $1 AND batch_id = ANY($2::TEXT[]) ORDER BY batch_id, account_id, source_id",
        user_id,
        sorted({row["batch_id"] for row in contributed}),
    )
    digest.update(_written([contributed, everywhere]))
    for part in parts:
        if part.reach is not None:
            digest.update(print_of(session, user_id, part.account_id, part.reach))
    return digest.hexdigest()


def _key(connection_id: str, id_: str, version: str, choice: str | None) -> str:
    return sha256(as_json([connection_id, id_, version, choice]).encode()).hexdigest()


def _statement(told: AccountStatement) -> _Statement:
    return _Statement(
        account=told.account,
        statement=told.statement,
        bookings=len(told.places),
        entries=told.entries,
        pending_entries=told.pending_entries,
        booked_amount=told.booked_amount,
        first_day=told.first_day,
        last_day=told.last_day,
    )


def _statements(told: Sequence[_Statement]) -> Iterator[AccountStatement]:
    place = 0
    for each in told:
        yield AccountStatement(
            account=each.account,
            places=range(place, place + each.bookings),
            statement=each.statement,
            entries=each.entries,
            pending_entries=each.pending_entries,
            booked_amount=each.booked_amount,
            first_day=each.first_day,
            last_day=each.last_day,
        )
        place += each.bookings
