"""One import into the store: its batches merged account by account, flagged, paired and journalled, in one
transaction."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from storage import accounts, connections, journal
from storage.connections import StoredConnection
from storage.database import Transaction
from storage.importing import contributions, duplicate_flags, transfer_pairs
from storage.importing.account_batch import AccountBatch, AccountReport
from storage.importing.account_identity import Owner, anonymous_owner, chosen_owner, owner
from storage.importing.batches import AccountStatement, ReadBatch, without_collection
from storage.importing.contributions import ContributedBlock, Contribution, blocks_of
from storage.importing.derivation import Derivation
from storage.importing.own_exports import OWN_IDS_LOOKED_AT, exported_from
from storage.importing.records import AccountRecord, InvalidRecord
from storage.users import User


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
    with without_collection():
        reports = {batch.id: run.add(batch) for batch in batches}
    duplicate_flags.flag_new(session, user.id, [id_ for id_, change in run.changes if change != "removed"])
    if run.changes:
        run.changes += [(id_, "modified") for id_ in transfer_pairs.pair_again(session, user.id)]
    changes = _each_once(run.changes)
    version = journal.record(session, user_id=user.id, job_id=job_id, changes=changes, now=now)
    return ImportReport(batches=reports, changes=changes, data_version=version)


def replay(
    session: Transaction, *, user: User, connection: StoredConnection, given: Sequence[Contribution], now: datetime
) -> None:
    """Import once more what one batch told `now`, as it did then; nothing is remembered or journalled again."""
    run = _Import(session, user, connection, now)
    with without_collection():
        for contribution in given:
            told = [
                AccountStatement(block.account, list(block.transactions), block.statement)
                for block in blocks_of(session, user.id, contribution)
            ]
            for statement in told:
                run.bring(statement.account, contribution.account_id)
            derivation = Derivation.of_user(session, user.id)
            run.merge(contribution.batch_id, contribution.account_id, contribution.source_id, told, derivation)
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
        self.now = now
        self.file_connections = connections.of_files(session, user.id)
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
        derivation = Derivation.of_user(self.session, self.user.id)
        reports = []
        for (part, id_), told in parts.items():
            batch_id = _part_of(batch, part)
            contributions.remember(
                self.session,
                user_id=self.user.id,
                job_id=self.job_id,
                connection_id=self.connection.id,
                account_id=id_,
                source_id=owners[id_].source_id,
                batch_id=batch_id,
                label=batch.name,
                blocks=[ContributedBlock(each.account, each.transactions, each.statement) for each in told],
                now=self.now,
            )
            reports.append(self.merge(batch_id, id_, owners[id_].source_id, told, derivation))
        return reports

    def _owner(self, batch: ReadBatch, account: AccountRecord, told: Sequence[AccountStatement]) -> Owner:
        """Whose account it is: the chosen one, that of an export which comes back, or the one it is known as."""
        if self.choice:
            return chosen_owner(
                self.session, user=self.user, connection=self.connection, account=account, choice=self.choice
            )
        records = [record for statement in told for record in statement.transactions[:OWN_IDS_LOOKED_AT]]
        exported = exported_from(self.session, self.user.id, account, records[:OWN_IDS_LOOKED_AT])
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

    def merge(
        self, batch_id: str, account: str, source: str, told: Sequence[AccountStatement], derivation: Derivation
    ) -> AccountReport:
        """The account after what this source told of it in this batch."""
        merge = AccountBatch(
            self.session,
            user_id=self.user.id,
            account_id=account,
            connection=self.connection,
            batch_id=batch_id,
            derivation=derivation,
            file_connections=self.file_connections,
            now=self.now,
        )
        report = merge.merge(source, told)
        self.changes += merge.changes
        return report


def _part_of(batch: ReadBatch, part: int) -> str:
    """What a file of a container is called where it is merged."""
    return f"{batch.id}/{part}" if part else batch.id


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
