"""What a share hands over, in the receiver's ledger: contributions like those of a bank, from which the accounts are
rebuilt. So what the giver takes back, or shares no more, leaves as if it had never been."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial

from msgspec import Struct
from msgspec.structs import replace as replace_fields

from analytics.records import AccountRecord, TransactionRecord
from storage import connections, detections
from storage.annotations import anchors, annotations
from storage.connections import AT_ONCE, SHARED, StoredConnection
from storage.database import Session, Transaction, as_json, set_values
from storage.events import outbox
from storage.importing import contributions, lent_bookings
from storage.importing.account_identity import Owner, owner, still_there
from storage.importing.batches import ReadBatch
from storage.importing.contributions import Contribution
from storage.importing.matching.stored_bookings import IN_FULL, as_record
from storage.importing.teller import Teller
from storage.notices import stored
from storage.undo_and_merge.rebuild import rebuild
from storage.users import User


class SharedPiece(Struct, frozen=True):
    """What one import has told the giver about one account, as it goes to the receiver: the `id` that tells it from
    all others, the giver's connection that told it and whether that reads files, the `source_id` of what the giver has
    merged into the account (None: the account itself), when it was told, and its content."""

    id: str
    told_by: str
    is_of_file: bool
    source_id: str | None
    imported_at: datetime
    account: AccountRecord
    content: ReadBatch


def own_tellings(session: Session, user_id: str, account_ids: Sequence[str]) -> list[tuple[Contribution, bool]]:
    """What this person's own banks and files have told about these accounts, in its order, and of each whether a file
    told it. What others share with them is left out."""
    kinds = _kinds(session, user_id)
    files = connections.of_files(session, user_id)
    return [
        (each, each.connection_id in files)
        for each in contributions.of_accounts(session, user_id, account_ids)
        if kinds.get(each.connection_id) not in SHARED
    ]


def shown_for_others(session: Session, user_id: str) -> dict[str, dict[str, list[TransactionRecord]]]:
    """What this person's own banks and files have told about accounts in question (the inner keys) and others show for
    them (the outer keys): these bookings, and as many more of their day and amount as both accounts have, so that
    whoever counts finds the former new."""
    found: dict[str, dict[str, list[TransactionRecord]]] = {}
    of_shares = connections.of_shares(session, user_id)
    lent = lent_bookings.lent(session, user_id).sort("owner", "id")
    for (holder, asked), of_both in lent.group_by("account_id", "owner", maintain_order=True):
        rows = session.rows(
            f"SELECT {IN_FULL}, account_id, connection_id FROM transactions WHERE user_id = $1"
            " AND (account_id = $2 OR id = ANY($3::TEXT[])) AND NOT is_adjusting_entry ORDER BY booking_date, id",
            *(user_id, asked, of_both["id"].to_list()),
        )
        told = [row for row in rows if row["connection_id"] not in of_shares]
        shown, own = ([row for row in told if row["account_id"] == id_] for id_ in (holder, asked))
        number = Counter((row["amount"], row["booking_date"]) for row in shown)
        dates = lent_bookings.dates_by_amount(session, user_id, str(holder))
        for amount, day in number:
            in_both = [row for row in own if (row["amount"], row["booking_date"]) == (amount, day)]
            shown += in_both[: dates[amount].count(day) - number[amount, day]]
        found.setdefault(str(holder), {})[str(asked)] = [as_record(row) for row in shown]
    return found


def connections_of(session: Session, user_id: str, giver: str) -> list[str]:
    """The ids of the receiver's connections to this giver: one for each of the giver's that told what is shared, so
    that what each source says is held against the same source's words alone, as it is at the giver's."""
    rows = session.rows(
        "SELECT id FROM connections WHERE user_id = $1 AND connector = ANY($2::TEXT[]) AND bank_name = $3 ORDER BY id",
        *(user_id, list(SHARED), giver),
    )
    return [row["id"] for row in rows]


def handed(session: Session, user_id: str, share_id: str, giver: str) -> list[Contribution]:
    """What this share has handed over, which an ended one may still have, too; in its order."""
    ids, brought = connections_of(session, user_id, giver), connections.accounts_of(session, user_id)
    account_ids = sorted({account for id_ in ids for account in brought.get(id_, ())})
    return [
        each
        for each in contributions.of_accounts(session, user_id, account_ids)
        if each.connection_id in ids and each.batch_id.startswith(f"{share_id}:")
    ]


def target(session: Transaction, user: User, giver: str, account: AccountRecord) -> Owner:
    """The account of the receiver that a shared account is, or will be, whichever of the giver's connections tells it:
    one that has its IBAN rather than the one that it was before it had one."""
    whoever = StoredConnection(
        id=connections.id_of(user_name=user.name, connector=SHARED[False], bank_name=giver),
        user_id=user.id,
        connector=SHARED[False],
        bank_name=giver,
        status="ACTIVE",
        settings={},
        cursor=None,
        consent_expires_at=None,
        failures_in_row=0,
        created_at=AT_ONCE,
    )
    teller = Teller(session, user, whoever, AT_ONCE, ())
    found = owner(teller, account)
    other = owner(teller, replace_fields(account, stable_key=account.iban)) if account.iban else found
    is_there = other.account_id != found.account_id and still_there(session, user.id, other.account_id)
    return other if is_there else found


def own_accounts(session: Session, user_id: str, *, proven: bool = False) -> set[str]:
    """The accounts that a connection of the person's own has told, or only those that a bank of theirs has told as
    this account: what they themselves have called the same is no proof."""
    kinds, files = _kinds(session, user_id), connections.of_files(session, user_id)
    by_word = _called_the_same(session, user_id) if proven else set()
    return {
        account
        for id_, brought in connections.accounts_of(session, user_id).items()
        if kinds.get(id_) not in SHARED and not (proven and id_ in files)
        for account in brought
        if (id_, account) not in by_word
    }


def _called_the_same(session: Session, user_id: str) -> set[tuple[str, str]]:
    """Connections and accounts of which the connections have told only parts that the user has merged into them."""
    found = session.rows(
        "SELECT told.connection_id, told.account_id FROM contributions AS told LEFT JOIN account_aliases AS merged"
        " ON merged.user_id = told.user_id AND merged.source_id = told.source_id AND merged.merged_into IS NOT NULL"
        " WHERE told.user_id = $1 GROUP BY told.connection_id, told.account_id"
        " HAVING count(*) = count(merged.source_id)",
        user_id,
    )
    return {(row["connection_id"], row["account_id"]) for row in found}


def replace(
    session: Transaction,
    *,
    user: User,
    giver: str,
    gone: Sequence[Contribution],
    new: Sequence[SharedPiece],
    now: datetime,
) -> None:
    """Take back what is `gone`, add what is `new`, and rebuild the accounts that this is about. What the person said of
    bookings that are gone then, and what was found about them, goes too; without anything left, so do the connections.
    The caller holds the user."""
    concerned = {each.account_id for each in gone}
    last = contributions.last(session, user.id)
    for piece in new:
        connection = connections.add(
            session,
            user_id=user.id,
            user_name=user.name,
            connector=SHARED[piece.is_of_file],
            bank_name=giver,
            told_by=piece.told_by,
            settings={},
            now=now,
        )
        found = target(session, user, giver, piece.account)
        contributions.remember(
            session,
            piece.content.statements,
            piece.content.spool,
            user_id=user.id,
            job_id="share",
            connection_id=connection.id,
            account_id=found.account_id,
            source_id=piece.source_id or found.source_id,
            batch_id=piece.id,
            label=None,
            imported_at=piece.imported_at,
        )
        concerned.add(found.account_id)
    batches = {each.batch_id for each in gone}  # what another account holds of them for a hidden one is theirs, too
    told = "account_id = ANY($2::TEXT[]) OR batch_id = ANY($3::TEXT[])"
    before = _bookings(session, user.id, told, sorted(concerned), sorted(batches))
    since = None if gone else last
    forget = partial(contributions.forget, session, user.id, gone)
    rebuilt = rebuild(session, user=user, account_ids=concerned, job_id="share", now=now, since=since, then=forget)
    vanished = before - _bookings(session, user.id, "id = ANY($2::TEXT[])", sorted(before))
    words = (id_ for gone_id in rebuilt.accounts_gone for id_ in anchors.of_account(session, user.id, gone_id))
    annotations.forget(session, user.id, [*vanished, *words])
    stored.take_back(session, user.id, rebuilt.accounts_gone, () if new else vanished)
    detections.forget(session, user.id)
    for table in ("account_aliases", "account_keys"):
        session.execute(
            f"DELETE FROM {table} WHERE user_id = $1 AND account_id = ANY($2::TEXT[])",
            *(user.id, list(rebuilt.accounts_gone)),
        )
    for id_ in connections_of(session, user.id, giver):
        _remove_if_empty(session, user.id, id_)


def forget_told(session: Transaction, user_id: str, account_ids: Collection[str]) -> None:
    """Forget, of these accounts, those that are gone: in what feeds and events still have of them, which apps that were
    not to see them may ask for later. The caller holds the user."""
    rows = session.rows("SELECT id FROM accounts WHERE user_id = $1", user_id)
    gone = sorted(set(account_ids) - {row["id"] for row in rows})
    session.execute("DELETE FROM removed WHERE user_id = $1 AND account_id = ANY($2::TEXT[])", user_id, gone)
    session.execute("DELETE FROM account_states WHERE user_id = $1 AND id = ANY($2::TEXT[])", user_id, gone)
    for event in outbox.about(session, user_id, gone):
        if "accounts" in event.data:  # that something changed is for an open page to hear
            others = {id_: counts for id_, counts in event.data["accounts"].items() if id_ not in gone}
            data = as_json({**event.data, "accounts": others})
            set_values(session, "events", {"user_id": user_id, "sequence": event.sequence}, data=data)
        else:
            session.execute("DELETE FROM events WHERE user_id = $1 AND sequence = $2", user_id, event.sequence)


def note_synced(session: Session, user_id: str, times: Mapping[str, datetime | None]) -> None:
    """Set when accounts that only others have told were read last at the giver's bank, by account."""
    for account_id, moment in times.items():
        set_values(session, "accounts", {"user_id": user_id, "id": account_id}, last_synced_at=moment)


def take_lines(session: Transaction, user_id: str, giver: str, lines: Mapping[str, Decimal | None]) -> bool:
    """Let accounts that others have told, and this giver first, go as far below zero as at the giver's; whether that
    changes any."""
    rows = session.rows(
        "SELECT id, credit_line FROM accounts WHERE user_id = $1 AND id = ANY($2::TEXT[])"
        " AND connection_id = ANY($3::TEXT[])",
        *(user_id, sorted(lines.keys() - own_accounts(session, user_id)), connections_of(session, user_id, giver)),
    )
    changed = [row["id"] for row in rows if row["credit_line"] != lines[row["id"]]]
    if changed:
        session.changes(user_id)
    for id_ in changed:
        set_values(session, "accounts", {"user_id": user_id, "id": id_}, credit_line=lines[id_])
    return bool(changed)


def _bookings(session: Session, user_id: str, condition: str, *parameters: object) -> set[str]:
    """The ids of the bookings that meet the condition, those included that the bank has taken back."""
    return {
        row["id"]
        for table in ("transactions", "taken_back_transactions")
        for row in session.rows(f"SELECT id FROM {table} WHERE user_id = $1 AND ({condition})", user_id, *parameters)
    }


def _remove_if_empty(session: Session, user_id: str, connection_id: str) -> None:
    named = (user_id, connection_id)
    if session.rows("SELECT sequence FROM contributions WHERE user_id = $1 AND connection_id = $2 LIMIT 1", *named):
        return
    for table in ("account_sources", "account_keys"):
        session.execute(f"DELETE FROM {table} WHERE user_id = $1 AND connection_id = $2", *named)
    session.execute("DELETE FROM connections WHERE user_id = $1 AND id = $2", *named)


def _kinds(session: Session, user_id: str) -> dict[str, str]:
    rows = session.rows("SELECT id, connector FROM connections WHERE user_id = $1", user_id)
    return {row["id"]: row["connector"] for row in rows}
