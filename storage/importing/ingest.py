"""The import core: records in, bookings merged, derived, flagged, paired and journalled, all in one transaction."""

import gc
import json
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal

import polars as pl

from storage import accounts, connections
from storage.connections import StoredConnection
from storage.database import Row, Transaction, as_json
from storage.importing import duplicate_flags, journal, pairing, statements, tellings
from storage.importing.derivation import Derivation, write
from storage.importing.identity import PROVIDER, own_id, transaction_id
from storage.importing.known import FILES, StoredRow
from storage.importing.matching import Match, claim_of, each_id_once, match_booked, match_pending
from storage.importing.owners import Owner, anonymous_owner, chosen_owner, owner
from storage.importing.records import AccountRecord, Batch, StatementRecord, TransactionRecord
from storage.importing.records import InvalidRecord as InvalidRecord
from storage.importing.rows import DECIMALS_MAX, DIGITS_BEFORE_POINT_MAX, incoming
from storage.importing.statements import AHEAD_DAYS_MAX
from storage.importing.tellings import Telling, ToldBlock, blocks_of
from storage.users import User

CURRENCY = re.compile("[A-Z]{3}")  # the shape of ISO 4217; lists of it age
OWN_IDS_LOOKED_AT = 100  # of a statement; one is enough to know it again
BALANCE_AHEAD = f"A balance is dated more than {AHEAD_DAYS_MAX} days ahead and was set aside."
NEIGHBOUR_DAYS = 60  # how far around a batch stored rows can be the same bookings (dates move, pending rows book)
ROWS_AT_ONCE = 20_000  # derived and written in one go: bounds memory, changes no result
NO_CLAIMS: Mapping[str, str] = {}
STORED_COLUMNS = (
    "id, identity, fingerprint, reference_keys, booking_date, amount, currency, counterpart_iban, counterpart_name,"
    " purpose, created_at, claims, connection_id"
)


@dataclass(slots=True)
class AccountStatement:
    """One statement of a batch: its account, its bookings, and what it says of the account as a whole."""

    account: AccountRecord
    transactions: list[TransactionRecord] = field(default_factory=list)
    statement: StatementRecord = field(default_factory=StatementRecord)

    @property
    def entries(self) -> list[TransactionRecord]:
        """What stands in the source as a row of its own: a batch is one, however many bookings it shows."""
        return [record for record in self.transactions if record.detail == 0]

    @property
    def booked(self) -> list[TransactionRecord]:
        """The bookings that move the booked balance."""
        return [record for record in self.transactions if record.status == "booked"]

    @property
    def adds_up(self) -> bool | None:
        """Whether opening plus bookings is closing; None where one of the balances is not stated."""
        opening, closing = self.statement.opening, self.statement.closing
        if opening is None or closing is None:
            return None
        return opening + sum((record.amount for record in self.booked), Decimal(0)) == closing


@dataclass(frozen=True, slots=True)
class ReadBatch:
    """A batch that was read to its end without an error: only such a one is imported."""

    id: str
    statements: list[AccountStatement]
    warnings: list[str]
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountReport:
    """What the import of one batch did to one account."""

    account_id: str
    new: int
    known: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What one import did: reports by batch id, and the journal's rows."""

    batches: Mapping[str, list[AccountReport]]
    changes: Sequence[tuple[str, journal.Change]]
    data_version: int

    @property
    def new_transactions(self) -> int:
        """Rows that became visible: new bookings, and pending ones that booked (decision 46)."""
        return sum(report.new for reports in self.batches.values() for report in reports)


def read(batch: Batch, *, today: date) -> ReadBatch:
    """Everything the batch says, statement by statement; raises what its source raises, and InvalidRecord.

    A balance of a day that is too far ahead is set aside with a warning: it would be the newest one for good.
    """
    found: list[AccountStatement] = []
    last_day = today + timedelta(days=AHEAD_DAYS_MAX)
    with _without_collection():
        for record in batch.records:
            if isinstance(record, TransactionRecord) and found:
                found[-1].transactions.append(_checked(record, last_day))
            elif isinstance(record, AccountRecord):
                _check_currency(record.currency)
                found.append(AccountStatement(record))
            elif not found:
                raise InvalidRecord("A booking stands before its account.")
            else:
                assert isinstance(record, StatementRecord)
                found[-1].statement = _dated(record, today)
                if max(record.opening_date or today, record.closing_date or today) > last_day:
                    found[-1].statement = replace(record, opening=None, closing=None)
                    batch.warnings.append(BALANCE_AHEAD)
    return ReadBatch(batch.id, found, batch.warnings, batch.name)


def store(
    session: Transaction,
    *,
    user: User,
    connection: StoredConnection,
    job_id: str,
    batches: Iterable[ReadBatch],
    now: datetime,
    choice: str | None = None,
) -> ImportReport:
    """Merge the batches into the user's accounts; runs inside the transaction that also completes the job. `choice` is
    the id of the account they are about, or NEW_ACCOUNT, where the user has said so; raises AccountUnclear where
    nobody says so."""
    run = _Import(session, user, connection, now, job_id=job_id, choice=choice)
    with _without_collection():
        reports = {batch.id: run.add(batch) for batch in batches}
    duplicate_flags.flag_new(session, user.id, [id_ for id_, change in run.changes if change != "removed"])
    if run.changes:
        run.changes += [(id_, "modified") for id_ in pairing.pair_again(session, user.id)]
    changes = _each_once(run.changes)
    version = journal.record(session, user_id=user.id, job_id=job_id, changes=changes, now=now)
    return ImportReport(batches=reports, changes=changes, data_version=version)


def tell_again(
    session: Transaction, *, user: User, connection: StoredConnection, tellings: Sequence[Telling], now: datetime
) -> None:
    """Import once more what one batch told `now`, as it did then; nothing is remembered or journalled again."""
    run = _Import(session, user, connection, now)
    with _without_collection():
        for telling in tellings:
            told = [
                AccountStatement(block.account, list(block.transactions), block.statement)
                for block in blocks_of(session, user.id, telling)
            ]
            for statement in told:
                run.bring(statement.account, telling.account_id)
            run.derivation = Derivation.of_user(session, user.id)
            run.merge(telling.batch_id, telling.account_id, telling.source_id, told)
    duplicate_flags.flag_new(session, user.id, [id_ for id_, change in run.changes if change != "removed"])


class _Import:
    """The state of one import transaction."""

    def __init__(
        self,
        session: Transaction,
        user: User,
        connection: StoredConnection,
        now: datetime,
        *,
        job_id: str = "",
        choice: str | None = None,
    ) -> None:
        self.job_id = job_id
        self.choice = choice
        self.session = session
        self.user = user
        self.connection = connection
        self.derivation = Derivation.of_user(session, user.id)
        self.now = now
        self.file_connections = connections.of_files(session, user.id)
        self.source = FILES if connection.id in self.file_connections else connection.id
        self.changes: list[tuple[str, journal.Change]] = []

    def add(self, batch: ReadBatch) -> list[AccountReport]:
        """Merge one batch, all statements of an account together: keys are unique in a file or not keys. The files of
        a container follow one another: the intraday and the daily report of one day tell the same bookings."""
        by_account: dict[AccountRecord, list[AccountStatement]] = defaultdict(list)
        for statement in batch.statements:
            by_account[statement.account].append(statement)
        parts: dict[tuple[int, str], list[AccountStatement]] = defaultdict(list)
        owners: dict[str, Owner] = {}
        unnamed: dict[tuple[str, str], Owner] = {}
        if self.choice and len({(account.stable_key, account.currency) for account in by_account}) > 1:
            raise InvalidRecord("The file is about several accounts; only for a file about one can it be chosen.")
        for account, told in by_account.items():
            whose = unnamed.get((account.stable_key, account.currency)) or self._owner(batch, account, told)
            if account.is_anonymous:  # the files of one container are about one account
                unnamed[account.stable_key, account.currency] = whose
            self.bring(whose.account, whose.account_id)
            owners.setdefault(whose.account_id, whose)
            parts[account.part, whose.account_id] += [replace(each, account=whose.account) for each in told]
        self.derivation = Derivation.of_user(self.session, self.user.id)
        reports = []
        for (part, id_), told in parts.items():
            batch_id = _part_of(batch, part)
            tellings.remember(
                self.session,
                user_id=self.user.id,
                job_id=self.job_id,
                connection_id=self.connection.id,
                account_id=id_,
                source_id=owners[id_].source_id,
                batch_id=batch_id,
                label=batch.name,
                blocks=[ToldBlock(each.account, each.transactions, each.statement) for each in told],
                now=self.now,
            )
            reports.append(self.merge(batch_id, id_, owners[id_].source_id, told))
        return reports

    def _owner(self, batch: ReadBatch, account: AccountRecord, told: Sequence[AccountStatement]) -> Owner:
        """Whose account it is: the chosen one, that of an export which comes back, or the one it is known as."""
        if self.choice:
            return chosen_owner(
                self.session, user=self.user, connection=self.connection, account=account, choice=self.choice
            )
        records = [record for statement in told for record in statement.transactions[:OWN_IDS_LOOKED_AT]]
        exported = self._exported_from(account, records[:OWN_IDS_LOOKED_AT])
        if exported is not None:
            return Owner(exported, exported, account)
        if not account.is_anonymous:
            return owner(self.session, user=self.user, connection=self.connection, account=account)
        return anonymous_owner(
            self.session,
            user=self.user,
            connection=self.connection,
            account=account,
            bookings=[record for statement in told for record in statement.booked],
            batch_id=_part_of(batch, account.part),
        )

    def bring(self, account: AccountRecord, id_: str) -> None:
        """Make the account known."""
        accounts.bring(
            self.session,
            user_id=self.user.id,
            account_id=id_,
            connection_id=self.connection.id,
            bank_name=self.connection.bank_name,
            account=account,
            now=self.now,
        )

    def _exported_from(self, account: AccountRecord, records: Sequence[TransactionRecord]) -> str | None:
        """The account that comes back in an export although it has no IBAN: the one whose bookings these are by our
        own ids (or were, in the store that wrote them), or without a booking the one of the same key, currency and
        bank, where there is only one. A file may name any id: it counts only where it names the same money."""
        if account.iban is not None:
            return None
        if records:
            named = {own: record for record in reversed(records) if (own := own_id(record))}
            if not named:
                return None
            first, record = next(reversed(named.items()))
            stored = self.session.rows(
                "SELECT account_id AS id, id AS own, booking_date, amount, currency FROM transactions"
                " WHERE user_id = $1 AND (id = ANY($2::TEXT[]) OR strpos(identity, $3) > 0)",
                self.user.id,
                list(named),
                first.removeprefix("txn_"),  # camt has no room for the dash
            )
            money = ("booking_date", "amount", "currency")
            rows = [
                row
                for row in stored
                if all(row[name] == getattr(named.get(row["own"], record), name) for name in money)
            ]
        else:
            rows = self.session.rows(
                "SELECT id FROM accounts WHERE user_id = $1 AND stable_key = $2 AND currency = $3 AND iban IS NULL"
                " AND ($4::TEXT IS NULL OR bank_name = $4)",
                self.user.id,
                account.stable_key,
                account.currency,
                account.bank_name,
            )
        found = {row["id"] for row in rows}
        return found.pop() if len(found) == 1 else None

    def merge(self, batch_id: str, account: str, source: str, told: Sequence[AccountStatement]) -> AccountReport:
        """Bookings, balances and gaps of the account after this batch of this source."""
        booked = each_id_once([record for statement in told for record in statement.booked], self.source)
        pending = [record for statement in told for record in statement.transactions if record.status == "pending"]
        matches = match_booked(
            booked,
            self._stored("transactions", account, booked),
            self._stored("pending_transactions", account),
            source=self.source,
            elsewhere=self._told_elsewhere(account, source, booked),
        )
        new = [match for match in matches if match.stored is None or match.takes_over]
        modified = [match for match in matches if self._told_before(match) not in (None, match.fingerprint)]
        self._claim([match for match in matches if self._is_unclaimed(match)])
        self._delete("pending_transactions", [match.stored.id for match in new if match.stored])
        self._delete("transactions", [match.stored.id for match in modified if match.stored])
        ids = self._write("transactions", account, batch_id, [*new, *modified])
        self.changes += [(id_, "added") for id_ in ids[: len(new)]]
        self.changes += [(id_, "modified") for id_ in ids[len(new) :]]
        is_complete = any(statement.statement.is_pending_complete for statement in told)
        if pending or is_complete:
            told_booked = {record.provider_id for record in booked} - {None}
            waiting = [record for record in pending if record.provider_id not in told_booked]
            self._merge_pending(account, batch_id, each_id_once(waiting, self.source), is_complete=is_complete)
        changes = statements.keep(
            self.session,
            user_id=self.user.id,
            account_id=account,
            connection_id=self.connection.id,
            batch_id=batch_id,
            stated=[(statement.statement, statement.adds_up) for statement in told],
            now=self.now,
        )
        self.changes += changes
        return AccountReport(account_id=account, new=len(new), known=len(matches) - len(new))

    def _merge_pending(
        self, account: str, batch_id: str, pending: Sequence[TransactionRecord], *, is_complete: bool
    ) -> None:
        """What is still pending keeps its id; a complete set ends all others."""
        known = self._stored("pending_transactions", account)
        booked = self._stored("transactions", account, pending)
        matches = match_pending(pending, known, booked, source=self.source)
        kept = {match.stored.id for match in matches if match.stored}
        self._delete("pending_transactions", [row.id for row in known if is_complete or row.id in kept])
        self._write("pending_transactions", account, batch_id, matches)

    def _told_elsewhere(self, account: str, source: str, around: Sequence[TransactionRecord]) -> set[str]:
        """Ids of the account's bookings that another source of it told first."""
        told_by = tellings.sources_of_batches(self.session, self.user.id, account)
        if not around or {account, *told_by.values()} == {source}:
            return set()
        days = [record.booking_date for record in around]
        rows = self.session.rows(
            "SELECT id, batch_id FROM transactions WHERE user_id = $1 AND account_id = $2"
            " AND booking_date BETWEEN $3 AND $4",
            self.user.id,
            account,
            min(days),
            max(days),
        )
        return {row["id"] for row in rows if told_by.get(row["batch_id"], account) != source}

    def _stored(self, table: str, account: str, around: Sequence[TransactionRecord] | None = None) -> list[StoredRow]:
        if around is not None and not around:
            return []
        days = [record.booking_date for record in around or ()]
        margin = timedelta(days=NEIGHBOUR_DAYS)
        rows = self.session.rows(
            f"SELECT {STORED_COLUMNS} FROM {table} WHERE user_id = $1 AND account_id = $2 AND NOT is_adjusting_entry"
            " AND ($3::DATE IS NULL OR booking_date BETWEEN $3 AND $4)",
            self.user.id,
            account,
            min(days) - margin if days else None,
            max(days) + margin if days else None,
        )
        if around is not None:
            rows += self._far_away(table, account, around, {row["id"] for row in rows})
        return [
            StoredRow(
                claims=self._claims(row.pop("claims"), row.pop("connection_id"), row["identity"], row["fingerprint"]),
                references=tuple(json.loads(row.pop("reference_keys"))),
                **row,
            )
            for row in rows
        ]

    def _far_away(
        self, table: str, account: str, records: Sequence[TransactionRecord], near: Container[str]
    ) -> list[Row]:
        """Rows of any day that the ids of these records may stand for: a provider's id is the booking, however far its
        date has moved."""
        ids = sorted({record.provider_id for record in records if record.provider_id is not None})
        if not ids:
            return []
        wanted = pl.DataFrame({"base": [f"{PROVIDER}{id_}" for id_ in ids]})
        with self.session.staged("wanted", wanted):
            rows = self.session.rows(
                f"SELECT {STORED_COLUMNS} FROM {table} WHERE user_id = $1 AND account_id = $2 AND (claims IS NOT NULL"
                " OR substr(identity, 1, length(identity) - strpos(reverse(identity), '#')) IN"
                " (SELECT base FROM wanted))",
                self.user.id,
                account,
            )
        return [row for row in rows if row["id"] not in near]

    def _claims(self, stored: str | None, connection_id: str, identity: str, fingerprint: str) -> Mapping[str, str]:
        """By which ids of which sources a row is known; a row's first id is in its identity."""
        if stored is not None:
            found: dict[str, str] = json.loads(stored)
            return found
        if not identity.startswith(PROVIDER):
            return NO_CLAIMS
        source = FILES if connection_id in self.file_connections else connection_id
        return {f"{source}:{identity.removeprefix(PROVIDER).rpartition('#')[0]}": fingerprint}

    def _told_before(self, match: Match) -> str | None:
        """What the source that guarantees its ids said of this booking when it told it last, by its fingerprint."""
        claim = claim_of(match.record, self.source)
        if match.stored is None or match.takes_over or claim is None:
            return None
        return match.stored.claims.get(claim)

    def _is_unclaimed(self, match: Match) -> bool:
        """Whether an id is told for the first time of a row that is known from elsewhere."""
        if match.stored is None or match.takes_over or match.record.provider_id is None:
            return False
        return self._told_before(match) is None and own_id(match.record) != match.stored.id

    def _claim(self, matches: Sequence[Match]) -> None:
        """Remember by which ids the source knows these rows; what they say stays."""
        claimed = [(match.stored.id, self._claims_with(match)) for match in matches if match.stored]
        frame = pl.DataFrame(claimed, schema={"id": pl.String(), "claims": pl.String()}, orient="row")
        write(self.session, self.user.id, frame)

    def _claims_with(self, match: Match) -> str | None:
        claim = claim_of(match.record, self.source)
        if match.stored is None or match.takes_over or claim is None:
            return None
        return as_json({**match.stored.claims, claim: match.fingerprint})

    def _write(self, table: str, account: str, batch_id: str, matches: Sequence[Match]) -> list[str]:
        """Derive and append the rows of these matches, a piece at a time; their ids."""
        written: list[str] = []
        for start in range(0, len(matches), ROWS_AT_ONCE):
            written += self._write_piece(table, account, batch_id, matches[start : start + ROWS_AT_ONCE])
        return written

    def _write_piece(self, table: str, account: str, batch_id: str, matches: Sequence[Match]) -> list[str]:
        ids = [match.stored.id if match.stored else transaction_id(account, match.identity) for match in matches]
        created = [match.stored.created_at if match.stored else self.now for match in matches]
        rows = self.derivation.derive(
            incoming(matches, ids, created).with_columns(
                pl.Series("claims", [self._claims_with(match) for match in matches], dtype=pl.String),
                user_id=pl.lit(self.user.id),
                account_id=pl.lit(account),
                connection_id=pl.lit(self.connection.id),
                batch_id=pl.lit(batch_id),
                is_potential_duplicate=False,
                is_adjusting_entry=False,
            )
        )
        self.session.append(table, rows.sort("booking_date", "id", descending=[True, False]))
        return ids

    def _delete(self, table: str, ids: Sequence[str]) -> None:
        if ids:
            self.session.execute(
                f"DELETE FROM {table} WHERE user_id = $1 AND id = ANY($2::TEXT[])", self.user.id, list(ids)
            )


def _part_of(batch: ReadBatch, part: int) -> str:
    """What a file of a container is called where it is merged."""
    return f"{batch.id}/{part}" if part else batch.id


@contextmanager
def _without_collection() -> Iterator[None]:
    """Records refer to nothing that refers back: looking for cycles among a million of them, again and again, took a
    quarter of the time of an import. Imports in several threads may overlap; the last one to begin ends it."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _dated(record: StatementRecord, today: date) -> StatementRecord:
    """A balance whose day the source does not say is that of today."""
    if record.closing is None or record.closing_date is not None:
        return record
    return replace(record, closing_date=today)


def _checked(record: TransactionRecord, last_day: date) -> TransactionRecord:
    """The record, if it has happened, its currency is a code and its amounts can be kept exactly."""
    if record.booking_date > last_day and record.status == "booked":
        raise InvalidRecord(f"A booking is dated more than {AHEAD_DAYS_MAX} days ahead.")
    _check_currency(record.currency)
    for amount in (record.amount, record.original_amount):
        if amount is None:
            continue
        if not amount.is_finite():
            raise InvalidRecord("An amount is not a number.")
        exponent = amount.as_tuple().exponent
        assert isinstance(exponent, int)
        if amount.adjusted() >= DIGITS_BEFORE_POINT_MAX or -exponent > DECIMALS_MAX:
            raise InvalidRecord(
                f"An amount has more than {DIGITS_BEFORE_POINT_MAX} digits or more than {DECIMALS_MAX} decimals."
            )
    return record


def _check_currency(code: str) -> None:
    if not CURRENCY.fullmatch(code):
        raise InvalidRecord("A currency is not a code of three capital letters.")


def _each_once(changes: Sequence[tuple[str, journal.Change]]) -> list[tuple[str, journal.Change]]:
    """One row per transaction: what was added in this import is not also modified by it, nor is a passing row kept."""
    net: dict[str, journal.Change | None] = {}
    for id_, change in changes:
        before = net.get(id_)
        if before == "added":
            net[id_] = None if change == "removed" else "added"
        elif before == "removed" and change == "added":
            net[id_] = "modified"
        else:
            net[id_] = change
    return [(id_, change) for id_, change in net.items() if change is not None]
