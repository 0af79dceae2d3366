"""Merges of two accounts into one, and separations: every contribution keeps the account that it was imported for."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from storage import accounts, connections
from storage.accounts import Difference
from storage.database import Session, Transaction, set_values
from storage.importing import account_identity, contributions
from storage.recurring import added
from storage.undo_and_merge import baseline
from storage.undo_and_merge.rebuild import Rebuilt, rebuild, set_settings, settings_of
from storage.users import User


class NotOneAccount(Exception):
    """Two accounts that cannot be one; the text says why."""


REFUSALS: Mapping[Difference, str] = {
    "currency": "Accounts of different currencies cannot be merged.",
    "kind": "Accounts of different types cannot be merged.",
    "iban": "Accounts with different IBANs cannot be merged.",
}


class NotMerged(Exception):
    """No account with this id was merged into another."""

    def __init__(self) -> None:
        super().__init__(self.__class__.__doc__)


class MergedAccount(Struct, frozen=True, kw_only=True):
    """An account that is a part of another one. `into` is the account that now holds its bookings; `parent` is the
    account it was merged into, which may later have been merged itself."""

    id: str
    into: str
    parent: str
    name: str | None
    iban: str | None
    bank_name: str
    given_name: str | None
    hidden_at: datetime | None
    perhaps_same_as: str | None


def merge(session: Transaction, *, user: User, source_id: str, target_id: str, now: datetime) -> Rebuilt:
    """Merge the source account into the target: the target holds the bookings of both, each once, and later imports of
    the source go to the target, as do recurring payments added by hand. What the user has set for the source is kept
    for `separate`. Raises NotOneAccount."""
    session.hold(user.id)
    check_mergeable(session, user.id, source_id=source_id, target_id=target_id)
    (settings,) = settings_of(session, user.id, [source_id])
    _end_questions(session, user.id, source_id=source_id, target_id=target_id)
    baseline.hand_over(session, user.id, source_id, target_id)
    set_values(session, "contributions", {"user_id": user.id, "account_id": source_id}, account_id=target_id)
    added.hand_over(session, user.id, source_id, target_id)
    account_identity.add_alias(session, user_id=user.id, source_id=source_id, account_id=target_id)
    kept = {name: settings[name] for name in ("given_name", "hidden_at", "perhaps_same_as")}
    set_values(session, "account_aliases", {"user_id": user.id, "source_id": source_id}, merged_into=target_id, **kept)
    return rebuild(session, user=user, account_ids={source_id, target_id}, job_id="merge", now=now, joined=source_id)


def separate(session: Transaction, *, user: User, source_id: str, now: datetime) -> Rebuilt:
    """Separate a merged account again: it returns with its id, the name and hiding that it had, the accounts merged
    into it before, and its own bookings, those imported since the merge included. Raises NotMerged."""
    session.hold(user.id)
    merged = merged_accounts(session, user.id)
    chosen = next((each for each in merged if each.id == source_id), None)
    if chosen is None:
        raise NotMerged
    ids = [source_id, *_merged_before(merged, source_id)]
    merged_ones = {"user_id": user.id, "source_id": ids, "account_id": chosen.into}
    set_values(session, "contributions", merged_ones, account_id=source_id)
    for table in ("account_keys", "account_aliases"):
        set_values(session, table, {"user_id": user.id, "source_id": ids}, account_id=source_id)
    session.execute("DELETE FROM account_aliases WHERE user_id = $1 AND source_id = $2", user.id, source_id)
    both = {source_id, chosen.into}
    rebuilt = rebuild(session, user=user, account_ids=both, job_id="separate", now=now, parted=both)
    settings = {name: getattr(chosen, name) for name in ("id", "given_name", "hidden_at", "perhaps_same_as")}
    set_settings(session, user.id, [settings])
    return rebuilt


def merged_accounts(session: Session, user_id: str) -> list[MergedAccount]:
    """The user's accounts that are parts of others, because the user has merged them, or has assigned an account of a
    source to another one; sorted by id, and described as their sources first described them."""
    aliases = session.rows(
        "SELECT source_id, account_id, merged_into, given_name, hidden_at, perhaps_same_as FROM account_aliases"
        " WHERE user_id = $1 ORDER BY source_id",
        user_id,
    )
    reported = contributions.of_accounts(session, user_id, sorted({row["account_id"] for row in aliases}))
    first = {each.source_id: each for each in reversed(reported)}
    banks = connections.bank_names(session, user_id)
    return [
        MergedAccount(
            id=row["source_id"],
            into=row["account_id"],
            parent=row["merged_into"] or row["account_id"],
            name=row["given_name"] or own.blocks[0].account.name,
            iban=own.blocks[0].account.iban,
            bank_name=own.blocks[0].account.bank_name or banks[own.connection_id],
            given_name=row["given_name"],
            hidden_at=row["hidden_at"],
            perhaps_same_as=row["perhaps_same_as"],
        )
        for row in aliases
        if (own := first.get(row["source_id"]))
    ]


def check_mergeable(session: Session, user_id: str, *, source_id: str, target_id: str) -> None:
    """Raise NotOneAccount for one and the same account, and where currency, kind or IBAN of two accounts differ; one's
    balance would replace the other's."""
    if source_id == target_id:
        raise NotOneAccount("These are already one account.")
    one, other = (each for each in accounts.every(session, user_id) if each.id in (source_id, target_id))
    difference = one.difference(other)
    if difference is not None:
        raise NotOneAccount(REFUSALS[difference])


def _end_questions(session: Session, user_id: str, *, source_id: str, target_id: str) -> None:
    """Make open questions whether an account duplicates the source ask about the target instead, and end the question
    whether the target duplicates the source, by showing the target again."""
    own = {"user_id": user_id, "id": target_id, "perhaps_same_as": source_id}
    set_values(session, "accounts", own, hidden_at=None, perhaps_same_as=None)
    set_values(session, "accounts", {"user_id": user_id, "perhaps_same_as": source_id}, perhaps_same_as=target_id)


def _merged_before(merged: Sequence[MergedAccount], account_id: str) -> list[str]:
    """The ids of the accounts that were merged into this one, and of those merged into them before."""
    parts = [each.id for each in merged if each.parent == account_id]
    return [*parts, *(before for part in parts for before in _merged_before(merged, part))]
