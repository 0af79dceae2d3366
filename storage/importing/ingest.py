"""Stores one batch in one transaction: merged account by account, flagged, paired and journalled."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import chain

import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from analytics.classification.rules import Rule
from analytics.messages import message
from analytics.records import AccountRecord, InvalidRecord
from storage import accounts, connections, journal
from storage.annotations import anchors, exported, portable, rule_tags
from storage.annotations.word_lines import InvalidWords
from storage.connections import StoredConnection
from storage.database import Transaction
from storage.importing import contributions, duplicate_flags, same_accounts, transfer_pairs
from storage.importing.account_batch import AccountBatch
from storage.importing.account_identity import (
    OWN_IDS_LOOKED_AT,
    AccountUnclear,
    Owner,
    account_of_export,
    anonymous_owner,
    chosen_owner,
    owner,
    remember,
    still_there,
)
from storage.importing.batches import AccountReport, AccountStatement, ReadBatch, spool_statements
from storage.importing.contributions import Contribution, records
from storage.importing.derivation import Derivation, derive_again
from storage.importing.lent_bookings import give_back, lend
from storage.importing.spool import Spool
from storage.importing.teller import Teller
from storage.users import User

BOOKINGS_MAX = 1_000_000  # of one user, who is read into memory as a whole: they take 1.8 GB there


class ImportReport(Struct, frozen=True, kw_only=True):
    """What the import of a batch did to each of its accounts, the rows for the journal (journal.CHANGES), and the data
    version of the user that it led to."""

    accounts: Sequence[AccountReport]
    changes: pl.DataFrame
    data_version: int

    @property
    def new_transactions(self) -> int:
        """The number of rows that became visible: new bookings, and pending ones that booked (decision 46)."""
        return sum(report.new for report in self.accounts)


def store(
    session: Transaction,
    *,
    user: User,
    connection: StoredConnection,
    job_id: str,
    batch: ReadBatch,
    now: datetime,
    choice: str | None = None,
) -> ImportReport:
    """Merge the batch into the user's accounts, inside the transaction that also counts it for its job, with all that
    follows: duplicates are flagged, own transfers paired, annotations and tags attached, questions about accounts
    asked, and changes journalled.

    `choice` is the id of the account that the batch is about, or NEW_ACCOUNT, if the user has said so. Raises
    AccountUnclear where neither that nor the connection's settings say whose files are that name no account, and
    InvalidRecord for more than BOOKINGS_MAX.
    """
    moment = contributions.next_moment(session, user.id, now)
    teller = Teller(session, user, connection, moment, connections.of_files(session, user.id))
    run = _Import(teller, job_id=job_id, choice=choice)
    lent = give_back(session, user.id)
    run.take_over(batch.words)
    reports = run.add(batch)
    proven = run.flag_duplicates({each.account_id for each in reports})
    changes = pl.concat([*run.changes, journal.change_rows(proven, "modified")])
    asked = same_accounts.ask(replace(teller, now=now), {each.account_id for each in reports})
    reports = [replace(each, same_as=asked.get(each.account_id)) for each in reports]
    changes = pl.concat([changes, lend(session, user.id, lent, now=now)])
    if asked or not changes.is_empty():
        changes = pl.concat([changes, journal.change_rows(transfer_pairs.pair_again(session, user.id), "modified")])
    if not changes.is_empty():
        _check_number(session, user.id)
        changes = pl.concat([changes, journal.change_rows(settle_words(session, user.id), "modified")])
        rule_tags.apply(session, user.id, run.rules, changes["transaction_id"].to_list())
    changes = _each_once(changes)
    version = journal.record(session, user_id=user.id, job_id=job_id, changes=changes, now=now)
    return ImportReport(accounts=reports, changes=changes, data_version=version)


def settle_words(session: Transaction, user_id: str, *, family: Collection[str] = ()) -> list[str]:
    """Attach the user's annotations to bookings that came back under other ids, derive these bookings anew, and return
    the ids of those that look different now. `family` as in `anchors.settle`."""
    found = anchors.settle(session, user_id, family=family)
    changed: list[str] = derive_again(session, user_id, found)["id"].to_list() if found else []
    return changed


def replay(
    session: Transaction, *, user: User, connection: StoredConnection, given: Sequence[Contribution], now: datetime
) -> None:
    """Merge the contributions of one batch again, at the time of their import (`now`), each into its account: the step
    of `rebuild`, after an undo, deletion or merge, that follows the baseline. Duplicates are flagged; pairing
    transfers, annotations, tags and the journal are left to `rebuild`, and no contribution is stored again."""
    run = _Import(Teller(session, user, connection, now, connections.of_files(session, user.id)))
    for contribution in given:
        reported, spool = spool_statements(records(session, user.id, contribution))
        for statement in reported:
            run.bring(statement.account, contribution.account_id)
        derivation = Derivation.of_user(session, user.id)
        into = AccountBatch(run.teller, contribution.account_id, contribution.batch_id, spool, derivation)
        into.merge(contribution.source_id, reported)
        run.written += into.written
    run.flag_duplicates({contribution.account_id for contribution in given})


class _Import:
    """The state of one import transaction."""

    def __init__(self, teller: Teller, *, job_id: str = "", choice: str | None = None) -> None:
        self.teller, self.session, self.user = teller, teller.session, teller.user
        self.job_id = job_id
        self.choice = choice
        self.changes = [pl.DataFrame(schema=journal.CHANGES)]
        self.written: list[pl.DataFrame] = []
        self.rules: Sequence[Rule] = ()
        self.currencies: Collection[str] = ()
        self.in_file = Counter[tuple[int, str]]()  # accounts by file of the container and currency
        self.can_be_chosen = False  # whether the user can say which account the batch is about

    def take_over(self, words: Sequence[str]) -> None:
        """Take over what an export says that the user has not said here, for all stored bookings and those to come.
        Raises InvalidRecord."""
        if not words:
            return
        try:
            portable.read(self.session, self.user.id, "\n".join(words), now=self.teller.now)
        except (ValueError, InvalidWords) as error:
            raise InvalidRecord("What you have said cannot be read: {reason}", reason=message(str(error))) from error
        changed = derive_again(self.session, self.user.id)["id"]
        self.changes.append(journal.change_rows(changed, "modified"))

    def add(self, batch: ReadBatch) -> list[AccountReport]:
        """Merge one batch, all statements of an account together, because keys are unique in a file or are no keys;
        returns what that did to each account. The files of a container are merged one after the other, because the
        intraday and the daily report of a day contain the same bookings. New accounts are added, and what was reported
        is kept as contributions.

        Raises AccountUnclear, and InvalidRecord where the user has chosen the account of a batch that is about several.
        """
        parts = self._parts(batch)
        derivation = Derivation.of_user(self.session, self.user.id)
        self.rules = derivation.rules
        return [
            self._merge(batch, part, id_, source, reported, derivation)
            for (part, id_, _), (source, reported) in parts.items()
        ]

    def _parts(self, batch: ReadBatch) -> Mapping[tuple[int, str, str], tuple[str, list[AccountStatement]]]:
        """The statements of the batch by file of the container, account id, and which of the accounts merged into that
        one they are of; each with the account's id by its source alone. The accounts are there afterwards."""
        by_account: dict[AccountRecord, list[AccountStatement]] = defaultdict(list)
        for statement in batch.statements:
            by_account[statement.account].append(statement)
        parts: dict[tuple[int, str, str], tuple[str, list[AccountStatement]]] = {}
        of_user = "SELECT source_id FROM account_aliases WHERE user_id = $1"
        merged = {row["source_id"] for row in self.session.rows(of_user, self.user.id)}
        unnamed: dict[tuple[str, str], Owner] = {}
        named = {(account.stable_key, account.currency) for account in by_account}
        self.currencies = {currency for _, currency in named}
        are_of_one = all(account.is_anonymous or account.is_by_name for account in by_account)
        self.can_be_chosen = len(named) == 1 or (len(named) == len(self.currencies) and are_of_one)
        if self.choice and not self.can_be_chosen:
            raise InvalidRecord("The file is about several accounts; only for a file about one can it be chosen.")
        in_file = {(account.part, account.currency, account.iban or account.stable_key) for account in by_account}
        self.in_file = Counter((part, currency) for part, currency, _ in in_file)
        unclear: list[AccountRecord] = []  # for one of them may be clear by another one
        for account in chain(by_account, unclear):
            reported = by_account[account]
            try:
                known = unnamed.get((account.stable_key, account.currency))
                whose = known or self._owner(batch, account, reported, [each.account_id for each in unnamed.values()])
            except AccountUnclear:
                if account in unclear:
                    raise
                unclear.append(account)
                continue
            if account.is_anonymous:  # the files of one container are about one account
                unnamed[account.stable_key, account.currency] = whose
            self.bring(whose.account, whose.account_id)
            if self.teller.is_live and not whose.is_remembered:
                remember(self.teller, account, whose)
            part = whose.source_id if whose.source_id in merged else whose.account_id
            _, told = parts.setdefault((account.part, whose.account_id, part), (whose.source_id, []))
            told += [replace(each, account=whose.account) for each in reported]
        return parts

    def _merge(
        self,
        batch: ReadBatch,
        part: int,
        account_id: str,
        source: str,
        reported: list[AccountStatement],
        derivation: Derivation,
    ) -> AccountReport:
        """Keep what one file reported about an account as a contribution, and merge it into that account."""
        batch_id = _part_of(batch, part)
        if self.teller.is_live:
            reported = contributions.forget_repeat(self.teller, account_id, source, reported)
        contributions.remember(
            self.session,
            reported,
            batch.spool,
            user_id=self.user.id,
            job_id=self.job_id,
            connection_id=self.teller.connection.id,
            account_id=account_id,
            source_id=source,
            batch_id=batch_id,
            label=batch.name,
            imported_at=self.teller.now,
        )
        into = AccountBatch(self.teller, account_id, batch_id, batch.spool, derivation)
        report = into.merge(source, reported)
        self.changes += into.changes
        self.written += into.written
        if batch.spool.with_words:
            self._take_over_words(batch.spool, account_id, reported)
        return report

    def _take_over_words(self, spool: Spool, account_id: str, reported: Sequence[AccountStatement]) -> None:
        """Copy the annotations in an export of this service to the bookings of this account that they fit, except where
        the user already has one. Bookings of the file that equal an annotated one in date, amount and currency are read
        too, because they decide which of several equal bookings is meant."""
        keys = spool.keys(each.places for each in reported)
        about = keys.filter(pl.col("place").is_in(spool.with_words)).select("booking_date", "amount", "currency")
        places = keys.join(about.unique(), on=about.columns, how="semi")["place"].sort().to_list()
        records = spool.records(places)
        got = exported.take_over(self.session, self.user.id, account_id, records, now=self.teller.now)
        changed = derive_again(self.session, self.user.id, got)["id"]
        self.changes.append(journal.change_rows(changed, "modified"))

    def _owner(
        self, batch: ReadBatch, account: AccountRecord, reported: Sequence[AccountStatement], told_with: Sequence[str]
    ) -> Owner:
        """The account that the statements belong to: the chosen one, that of an imported export, the one known as this
        account, or, for a file that names none, the kept or proven one (`told_with` as in `anonymous_owner`). Raises
        AccountUnclear."""
        if self.choice:
            return chosen_owner(self.teller, account, self.choice, self.currencies)
        keys = batch.spool.keys(each.places for each in reported)
        looked_at = [] if account.iban else batch.spool.records(keys["place"].head(OWN_IDS_LOOKED_AT).to_list())
        stated = [each.statement for each in reported]
        exported = account_of_export(self.teller, account, looked_at, stated)
        if exported is not None:
            return Owner(exported, exported, account)
        if account.is_anonymous:
            is_alone = self.in_file[account.part, account.currency] == 1  # else the file tells it apart from others
            unnamed = is_alone and (self.teller.connection.settings.get("account") or account.kept_for)
            if unnamed and (known := still_there(self.session, self.user.id, unnamed)):
                return chosen_owner(self.teller, account, known, self.currencies)
        elif not (account.is_by_name and self.can_be_chosen):
            return owner(self.teller, account)
        return anonymous_owner(
            self.teller,
            account,
            bookings=keys.filter("is_booked"),
            stated=stated,
            batch_id=_part_of(batch, account.part),
            told_with=told_with,
        )

    def bring(self, account: AccountRecord, id_: str) -> None:
        """Add the account, or fill in its missing properties."""
        accounts.bring(self.session, self.teller.connection, account, account_id=id_, now=self.teller.now)

    def flag_duplicates(self, account_ids: Collection[str]) -> list[str]:
        """Flag new rows that look like bookings from elsewhere, and take the flag from those that statements prove; the
        ids of these are returned."""
        if self.written:
            duplicate_flags.flag_new(self.session, self.user.id, pl.concat(self.written))
        return duplicate_flags.take_from_proven(self.session, self.user.id, account_ids)


def _part_of(batch: ReadBatch, part: int) -> str:
    """The batch id of one file of a container (from 1); that of the batch itself where it is no container (0)."""
    return f"{batch.id}/{part}" if part else batch.id


def _check_number(session: Transaction, user_id: str) -> None:
    """Raise InvalidRecord where the user has more than BOOKINGS_MAX bookings now."""
    [row] = session.rows("SELECT count(*) AS number FROM transactions WHERE user_id = $1", user_id)
    if row["number"] > BOOKINGS_MAX:
        raise InvalidRecord(
            "This would make {bookings} transactions of one person; at most {limit} can be kept.",
            bookings=f"{row['number']:,}",
            limit=f"{BOOKINGS_MAX:,}",
        )


def _each_once(changes: pl.DataFrame) -> pl.DataFrame:
    """The changes, one per transaction: a row added by this import is not also modified, and one added and removed is
    left out."""
    if not changes["transaction_id"].is_duplicated().any():
        return changes
    first, last = pl.col("change").first(), pl.col("change").last()
    is_gone = last == "removed"
    there = pl.when(is_gone).then(last).otherwise(pl.lit("modified"))
    net = pl.when(first != "added").then(there).when(~is_gone).then(first)
    return changes.group_by("transaction_id", maintain_order=True).agg(change=net).drop_nulls("change")
