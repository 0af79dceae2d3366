"""Rebuilding of accounts from the records of their imports: to undo an import or delete an account (merges: merges.py).

An account is its baseline, from before imports were remembered, followed by every contribution in order. So undoing
changes the list of contributions and lets the function that every import uses make the account anew; nothing has to be
reversed.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any

import polars as pl
from msgspec import Struct

from analytics.frames import compact
from storage import accounts, connections, jobs, journal, rules, transactions
from storage.annotations import anchors, annotations, rule_tags
from storage.changes import feed
from storage.database import Session, Transaction, set_values
from storage.importing import contributions, ingest, transfer_pairs
from storage.importing.contributions import Contribution
from storage.importing.derivation import derive_again, write
from storage.importing.lent_bookings import give_back, lend
from storage.transactions import EVERYTHING
from storage.undo_and_merge import baseline
from storage.users import User

STATE = {**EVERYTHING, "identity": pl.String(), "batch_id": pl.String()}

SETTINGS = ("given_name", "hidden_at", "perhaps_same_as", "given_credit_line")
"""What a user sets for an account, which lives on when the account is made anew."""
DELETED = "What this bank had brought was deleted or taken back meanwhile. Sync again."


class ImportUnknown(Exception):
    """The user has no import with this id. `bankdata imports list` shows them."""

    def __init__(self) -> None:
        super().__init__(self.__class__.__doc__)


class ImportNotKept(ImportUnknown):
    """Nothing of this import can be taken back: it brought nothing, its accounts have been deleted, or it was made
    before imports were remembered."""


class SharedByOthers(ImportUnknown):
    """Somebody shares this account, so it cannot be deleted. Leave the share, or hide the account."""


class ImportRunning(ImportUnknown):
    """This import has not ended yet. Try again when it has."""


class Rebuilt(Struct, frozen=True, kw_only=True):
    """The outcome of a rebuilding: how many bookings are new, how many are gone, which accounts are gone, and by how
    many the bookings are `fewer` now, adjusting entries left out."""

    added: int
    removed: int
    accounts_gone: Sequence[str]
    fewer: int = 0


def undo(session: Transaction, *, user: User, job_id: str, now: datetime) -> Rebuilt:
    """Take back exactly what this import brought. Raises ImportUnknown, ImportNotKept and ImportRunning.

    A source with a cursor is asked for everything the next time, because it would not report the same again.
    """
    session.hold(user.id)
    found = session.rows(
        "SELECT connection_id, status FROM jobs WHERE user_id = $1 AND id = $2 AND undone_at IS NULL", user.id, job_id
    )
    reported = contributions.of_job(session, user.id, job_id)
    if not found:
        raise ImportUnknown
    if found[0]["status"] not in ("completed", "failed"):
        raise ImportRunning
    if not reported:
        raise ImportNotKept
    set_values(session, "jobs", {"user_id": user.id, "id": job_id}, undone_at=now)
    _ask_for_everything(session, user.id, found[0]["connection_id"], now)
    ids = {contribution.account_id for contribution in reported}
    forget = partial(contributions.forget, session, user.id, reported)
    return rebuild(session, user=user, account_ids=ids, job_id=job_id, now=now, then=forget)


def delete(session: Transaction, *, user: User, account_id: str, now: datetime) -> Rebuilt:
    """Delete the account with everything imported for it and what its user said of its bookings; a later import of the
    same account brings it back. Raises SharedByOthers.

    A source with a cursor is asked for everything the next time, as after `undo`: else a sync would bring back the last
    days alone.
    """
    session.hold(user.id)
    reported = contributions.of_accounts(session, user.id, [account_id])
    if connections.is_any_shared(session, user.id, {each.connection_id for each in reported}):
        raise SharedByOthers
    for connection_id in sorted({contribution.connection_id for contribution in reported}):
        _ask_for_everything(session, user.id, connection_id, now)

    def forget() -> None:
        contributions.forget(session, user.id, reported)
        baseline.forget(session, user.id, account_id)
        annotations.forget(session, user.id, anchors.of_account(session, user.id, account_id))
        for table in ("account_aliases", "account_keys"):
            session.execute(f"DELETE FROM {table} WHERE user_id = $1 AND account_id = $2", user.id, account_id)

    return rebuild(session, user=user, account_ids={account_id}, job_id="delete", now=now, then=forget)


def _ask_for_everything(session: Transaction, user_id: str, connection_id: str, now: datetime) -> None:
    """Let the next sync of the connection ask its source for everything. One that is under way ends as failed: it asks
    for the last days alone, and would store its cursor."""
    jobs.end_running(session, user_id, connection_id, error=DELETED, now=now)
    set_values(session, "connections", {"user_id": user_id, "id": connection_id}, cursor=None)


def rebuild(
    session: Transaction,
    *,
    user: User,
    account_ids: set[str],
    job_id: str,
    now: datetime,
    joined: str | None = None,
    parted: Collection[str] = (),
    since: int | None = None,
    returning: Sequence[Mapping[str, Any]] = (),
    then: Callable[[], object] = lambda: None,
) -> Rebuilt:
    """Make these accounts anew from their remaining contributions, update everything that depends on them, and journal
    what has changed. An account without contributions and baseline is gone afterwards, with what its user said it held.

    `joined` is an account that has become a part of another one, `parted` are accounts that were one until now; the
    user's annotations follow their bookings. With `since`, only contributions after this one are new and nothing else
    has changed: they are merged into the accounts as these are. `returning` are the settings (`id` and SETTINGS) of
    accounts that are there again afterwards. `then` changes whose the contributions are, or forgets some, once the
    bookings that other accounts hold for hidden ones are given back, which is told by them.
    """
    ids = sorted(account_ids)
    before = _state(session, user.id)
    lent = give_back(session, user.id)
    then()
    settings = settings_of(session, user.id, ids)
    reported = _told_by_sources(session, user.id, contributions.of_accounts(session, user.id, ids))
    if since is None:
        _clear(session, user.id, ids)
        baseline.restore(session, user.id, ids)
        _bring_first(session, user.id, reported)
    more = [each for each in reported if since is None or each.sequence > since]
    for (job, connection_id, _), of_batch in groupby(more, key=_batch):
        each = list(of_batch)
        connection = connections.find(session, user.id, connection_id)
        assert connection is not None, f"the connection of import {job} has vanished"
        ingest.replay(session, user=user, connection=connection, given=each, now=each[0].imported_at)
    _set_settings(session, user.id, [*settings, *returning])
    _set_ibans(session, user.id, reported)
    _set_synced(session, user.id)
    _set_positions(session, user.id)
    existing = _existing_ids(session, user.id)
    gone = [row for row in settings if row["id"] not in existing]
    _settle_questions(session, user.id)
    lend(session, user.id, lent, now=now)
    transfer_pairs.pair_again(session, user.id)
    _derive_again_without(session, user.id, gone)
    ingest.settle_words(session, user.id, family=parted)
    rule_tags.apply(session, user.id, rules.of_user(session, user.id))
    if joined is not None:
        _join_words(session, user.id, joined, now=now)
    after = _state(session, user.id)
    changes = _changes(before, after)
    _keep_states(session, user.id, before, after.filter(pl.col("account_id").is_in(ids)))
    feed.record_removed(session, user.id, before.join(after, on="id", how="anti").select("id", "account_id"))
    journal.record(session, user_id=user.id, job_id=job_id, changes=changes, now=now)
    added, removed = (changes.filter(pl.col("change") == kind).height for kind in ("added", "removed"))
    booked, left = (each.filter(~pl.col("is_adjusting_entry")).height for each in (before, after))
    return Rebuilt(added=added, removed=removed, accounts_gone=[row["id"] for row in gone], fewer=booked - left)


def _told_by_sources(session: Session, user_id: str, reported: Sequence[Contribution]) -> list[Contribution]:
    """These contributions without those to accounts of which nobody tells any more but their user, who has said what
    they held; those are forgotten."""
    told = {each.account_id for each in reported if contributions.said_of(each) is None}
    told.update(baseline.account_ids(session, user_id))
    alone = [each for each in reported if each.account_id not in told]
    if alone:
        contributions.forget(session, user_id, alone)
    return [each for each in reported if each.account_id in told]


def _join_words(session: Transaction, user_id: str, account_id: str, *, now: datetime) -> None:
    """Combine the annotations of two bookings that have become one, after this account was merged into another, and
    derive the bookings anew."""
    pairs = anchors.twins(session, user_id, account_id)
    for old, kept in pairs:
        booking = transactions.find(session, user_id, kept, may_be_hidden=False)
        assert booking is not None, "a twin is there"
        one, other = (annotations.find(session, user_id, id_) for id_ in (kept, old))
        both = annotations.together(one, other, booking)
        annotations.say(session, user_id, both, now=now)
        annotations.forget(session, user_id, [old])
    if pairs:
        derive_again(session, user_id, [kept for _, kept in pairs])


def _bring_first(session: Session, user_id: str, reported: Sequence[Contribution]) -> None:
    """Create accounts that others were merged into from their own source, even where another source reported first."""
    own = {each.account_id: each for each in reversed(reported) if (each.told_of or each.source_id) == each.account_id}
    for id_, contribution in own.items():
        connection = connections.find(session, user_id, contribution.connection_id)
        assert connection is not None, f"the connection of import {contribution.job_id} has vanished"
        account = contribution.blocks[0].account
        accounts.bring(session, connection, account, account_id=id_, now=contribution.imported_at)


def _batch(contribution: Contribution) -> tuple[str, str, str]:
    """The key of the contributions that were stored together: import, connection, and batch without the number of a
    file in its container (such as a ZIP file)."""
    return contribution.job_id, contribution.connection_id, contribution.batch_id.partition("/")[0]


def _state(session: Session, user_id: str) -> pl.DataFrame:
    """The user's bookings: `id`, `account_id`, `is_adjusting_entry`, the columns feed.STATES, and `digest`, which
    differs where anything does that is told of two."""
    schema = {**STATE, **feed.STATES}
    digest = pl.struct(*STATE).hash().alias("digest")
    pieces = [
        compact(
            transactions.everything(session, user_id, schema, days=days).select(
                "id", "account_id", "is_adjusting_entry", *feed.STATES, digest
            )
        )
        for days in transactions.spans(session, user_id, transactions.number_of(session, user_id))
    ]
    return pl.concat(pieces)


def _keep_states(session: Transaction, user_id: str, before: pl.DataFrame, rebuilt: pl.DataFrame) -> None:
    """Give rebuilt bookings the states they had before, since they were never gone, and new ones the coming state; the
    journal marks the changed ones."""
    coming = pl.lit(session.coming_state(user_id))
    known = rebuilt.select("id").join(before.select("id", *feed.STATES), on="id", how="left")
    write(session, user_id, known.with_columns(pl.col(name).fill_null(coming) for name in feed.STATES))


def _changes(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    common = after.join(before, on="id", suffix="_before")
    of_kinds: dict[journal.Change, pl.DataFrame] = {
        "removed": before.join(after, on="id", how="anti"),
        "added": after.join(before, on="id", how="anti"),
        "modified": common.filter(pl.col("digest") != pl.col("digest_before")),
    }
    return pl.concat(journal.change_rows(rows["id"].sort(), change) for change, rows in of_kinds.items())


def settings_of(session: Session, user_id: str, ids: Sequence[str]) -> list[dict[str, Any]]:
    """The user's settings of these accounts (SETTINGS), and their IBANs."""
    return session.rows(
        f"SELECT id, iban, former_ibans, {', '.join(SETTINGS)} FROM accounts"
        " WHERE user_id = $1 AND id = ANY($2::TEXT[])",
        *(user_id, ids),
    )


def _set_settings(session: Session, user_id: str, settings: Sequence[Mapping[str, Any]]) -> None:
    """Restore the settings (SETTINGS) that `settings_of` returned; accounts that are gone are passed over."""
    for row in settings:
        kept = {name: row[name] for name in SETTINGS}
        set_values(session, "accounts", {"user_id": user_id, "id": row["id"]}, **kept)


def _set_ibans(session: Session, user_id: str, reported: Sequence[Contribution]) -> None:
    """Give each account that a bank has given another IBAN (`merge`) the newest one, with its bank, and note the others
    as former."""
    ranked: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for row in session.rows(
        "SELECT account_id, iban, iban_rank FROM account_aliases WHERE user_id = $1 AND iban IS NOT NULL", user_id
    ):
        ranked[row["account_id"]].append((row["iban_rank"], row["iban"]))
    for account in accounts.every(session, user_id):
        told = [block.account for each in reported if each.account_id == account.id for block in each.blocks]
        if account.id not in ranked or not told:
            continue
        rank, newest = max(ranked[account.id])
        iban = newest if rank > 0 else account.iban
        stated = (account.iban, *(each.iban for each in told), *(each for _, each in ranked[account.id]))
        former = [each for each in dict.fromkeys(stated) if each and each != iban]
        said = next((each for each in reversed(told) if each.iban == iban), account)
        now = {"iban": iban, "bic": said.bic or account.bic, "bank_name": said.bank_name or account.bank_name}
        of_account = {"user_id": user_id, "id": account.id}
        set_values(session, "accounts", of_account, former_ibans=" ".join(former) or None, **now)


def _settle_questions(session: Session, user_id: str) -> None:
    """Let questions about an account that was merged ask about the one that it is a part of, and end those about an
    account that is gone, or is the one in question: that one is shown."""
    merged = "SELECT {} FROM account_aliases WHERE user_id = $1"
    is_gone = "perhaps_same_as NOT IN (SELECT id FROM accounts WHERE user_id = $1)"
    session.execute(
        f"UPDATE accounts SET perhaps_same_as ="
        f" ({merged.format('account_id')} AND source_id = accounts.perhaps_same_as)"
        f" WHERE user_id = $1 AND {is_gone} AND perhaps_same_as IN ({merged.format('source_id')})",
        user_id,
    )
    session.execute(
        "UPDATE accounts SET hidden_at = NULL, perhaps_same_as = NULL"
        f" WHERE user_id = $1 AND (perhaps_same_as = id OR {is_gone})",
        user_id,
    )


def _clear(session: Session, user_id: str, ids: Sequence[str]) -> None:
    for table in (*baseline.TABLES, "taken_back_transactions", "former_amounts"):
        session.execute(f"DELETE FROM {table} WHERE user_id = $1 AND account_id = ANY($2::TEXT[])", user_id, ids)
    session.execute("DELETE FROM accounts WHERE user_id = $1 AND id = ANY($2::TEXT[])", user_id, ids)


def _set_synced(session: Session, user_id: str) -> None:
    """Set each account's time of the last completed sync or import of its connections, undone ones left out; a sync
    covers all accounts of the connection, also those without news."""
    session.execute(
        "UPDATE accounts SET last_synced_at = (SELECT max(j.updated_at) FROM jobs j JOIN account_sources s"
        " ON s.user_id = j.user_id AND s.connection_id = j.connection_id"
        " WHERE s.user_id = $1 AND s.account_id = accounts.id AND j.user_id = $1 AND j.status = 'completed'"
        " AND j.undone_at IS NULL) WHERE user_id = $1",
        user_id,
    )


def _set_positions(session: Session, user_id: str) -> None:
    """Number the accounts in the order of their first reports; those from before imports were remembered come first."""
    first = {
        row["account_id"]: row["sequence"]
        for row in session.rows(
            "SELECT account_id, min(sequence) AS sequence FROM contributions WHERE user_id = $1 GROUP BY account_id",
            user_id,
        )
    }
    stood = {
        row["id"]: row["position"]
        for row in session.rows("SELECT id, position FROM earlier_accounts WHERE user_id = $1", user_id)
    }
    ids = sorted(
        _existing_ids(session, user_id),
        key=lambda id_: (id_ not in stood, stood.get(id_, 0), first.get(id_, 0), id_),
    )
    for position, id_ in enumerate(ids):
        session.execute(
            "UPDATE accounts SET position = $3 WHERE user_id = $1 AND id = $2 AND position <> $3",
            *(user_id, id_, position),
        )


def _existing_ids(session: Session, user_id: str) -> set[str]:
    return {row["id"] for row in session.rows("SELECT id FROM accounts WHERE user_id = $1", user_id)}


def _derive_again_without(session: Transaction, user_id: str, gone: Sequence[Mapping[str, Any]]) -> None:
    """Derive bookings with a deleted account's IBAN again, because that account now counts as somebody else's."""
    rows = session.rows(
        "SELECT id FROM transactions WHERE user_id = $1 AND counterpart_iban = ANY($2::TEXT[])",
        *(user_id, [iban for row in gone for iban in accounts.own_ibans(row["iban"], row["former_ibans"])]),
    )
    if rows:
        derive_again(session, user_id, [row["id"] for row in rows])
