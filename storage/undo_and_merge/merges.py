"""Merges of two accounts into one, and separations: every contribution keeps the account that it was imported for."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from msgspec import Struct

from storage import accounts, connections
from storage.accounts import Difference
from storage.database import Row, Session, Transaction, set_values
from storage.importing import account_identity, contributions
from storage.importing.contributions import Contribution
from storage.notices import looks, stored
from storage.recurring import added
from storage.undo_and_merge import baseline
from storage.undo_and_merge.rebuild import SETTINGS, Rebuilt, rebuild, settings_of
from storage.users import User


class NotOneAccount(Exception):
    """Two accounts that cannot be one; the text says why."""


REFUSALS: Mapping[Difference, str] = {
    "currency": "Accounts of different currencies cannot be merged.",
    "kind": "Accounts of different types cannot be merged.",
    "iban": "Accounts with different IBANs cannot be merged, unless the bank has given the account a new one.",
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
    given_credit_line: Decimal | None
    iban_rank: int | None


def merge(
    session: Transaction, *, user: User, source_id: str, target_id: str, continues: bool = False, now: datetime
) -> Rebuilt:
    """Merge the source account into the target: the target holds the bookings of both, each once, and later imports of
    the source go to the target. `continues` says that the bank has given the account a new IBAN: the target then has
    both IBANs, and shows the one with the latest bookings. What the user has set for the source is kept for `separate`.
    Raises NotOneAccount."""
    session.hold(user.id)
    is_new_iban = check_mergeable(session, user.id, source_id=source_id, target_id=target_id, continues=continues)
    (settings,) = settings_of(session, user.id, [source_id])
    kept = {name: settings[name] for name in SETTINGS}

    def join() -> None:
        ranked = _ranked(session, user.id, settings, target_id) if is_new_iban else {}
        baseline.hand_over(session, user.id, source_id)
        for id_ in (source_id, target_id):
            _keep_whose(session, user.id, id_)
        set_values(session, "contributions", {"user_id": user.id, "account_id": source_id}, account_id=target_id)
        chosen = {"user_id": user.id, "account_id": source_id, "merged_into": None}
        set_values(session, "account_aliases", chosen, merged_into=source_id)
        account_identity.add_alias(session, user_id=user.id, source_id=source_id, account_id=target_id)
        alias = {"user_id": user.id, "source_id": source_id}
        set_values(session, "account_aliases", alias, merged_into=target_id, **kept, **ranked)

    stored.hand_over(session, user.id, source_id, target_id)
    looks.join(session, user.id, [source_id, target_id])
    both = {source_id, target_id}
    return rebuild(session, user=user, account_ids=both, job_id="merge", now=now, joined=source_id, then=join)


def separate(session: Transaction, *, user: User, source_id: str, now: datetime) -> Rebuilt:
    """Separate a merged account again: it returns with its id, the name and hiding that it had, the accounts merged
    into it before, and its own bookings, those imported since the merge included. Raises NotMerged."""
    session.hold(user.id)
    merged = merged_accounts(session, user.id)
    chosen = next((each for each in merged if each.id == source_id), None)
    if chosen is None:
        raise NotMerged
    ids = [source_id, *_merged_before(session, user.id, source_id)]
    into, rank = chosen.into, chosen.iban_rank or 0

    def part() -> None:
        _keep_whose(session, user.id, into)
        merged_ones = {"user_id": user.id, "told_of": ids, "account_id": into}
        set_values(session, "contributions", merged_ones, account_id=source_id)
        for table in ("account_keys", "account_aliases"):
            set_values(session, table, {"user_id": user.id, "source_id": ids}, account_id=source_id)
        _move_keys(session, user.id, into, source_id)
        added.give_back(session, user.id, into, ids)
        session.execute("DELETE FROM account_aliases WHERE user_id = $1 AND source_id = $2", user.id, source_id)
        _move_ranks(session, user.id, source_id, -rank)

    both = {source_id, into}
    stored.hand_over(session, user.id, into, source_id)
    looks.join(session, user.id, both)
    settings = {name: getattr(chosen, name) for name in ("id", *SETTINGS)}
    return rebuild(
        session, user=user, account_ids=both, job_id="separate", now=now, parted=both, returning=[settings], then=part
    )


def merged_accounts(session: Session, user_id: str) -> list[MergedAccount]:
    """The user's accounts that are parts of others, because the user has merged them, or has assigned an account of a
    source to another one; sorted by id, and described as their sources first described them."""
    aliases = session.rows(
        f"SELECT source_id, account_id, merged_into, {', '.join(SETTINGS)}, iban_rank"
        " FROM account_aliases WHERE user_id = $1 ORDER BY source_id",
        user_id,
    )
    reported = contributions.of_accounts(session, user_id, sorted({row["account_id"] for row in aliases}))
    whose = _whose(session, user_id, reported)
    first = {whose[each.sequence]: each for each in reversed(reported)}
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
            given_credit_line=row["given_credit_line"],
            iban_rank=row["iban_rank"],
        )
        for row in aliases
        if (own := first.get(row["source_id"]))
    ]


def check_mergeable(session: Session, user_id: str, *, source_id: str, target_id: str, continues: bool = False) -> bool:
    """Whether the IBANs of two accounts differ that may be one all the same, because the one `continues` the other, or
    the user is being asked whether it does. Raises NotOneAccount for one and the same account, where currency, kind or
    IBAN differ otherwise (one's balance would replace the other's), and where somebody shares one of them, unless the
    user is being asked whether theirs is that one."""
    if source_id == target_id:
        raise NotOneAccount("These are already one account.")
    owned = {each.id: each for each in accounts.every(session, user_id)}
    one, other = owned[source_id], owned[target_id]
    kept = {source_id} if one.same_as == target_id else {source_id, target_id}
    by = {id_ for id_, brought in connections.accounts_of(session, user_id).items() if brought & kept}
    if connections.is_any_shared(session, user_id, by):
        raise NotOneAccount("An account that somebody shares cannot be merged: apps would see what is not for them.")
    difference = one.difference(other)
    is_new_iban = difference == "iban" and (continues or one.same_as == other.id or other.same_as == one.id)
    if difference is not None and not is_new_iban:
        raise NotOneAccount(REFUSALS[difference])
    return is_new_iban


def _ranked(session: Session, user_id: str, source: Row, target_id: str) -> dict[str, Any]:
    """The source's IBAN with its rank among those of the target, whose first one has rank 0: above all of them where
    the source has the latest booking or balance, else below them. Those that the source itself had keep their
    order."""
    source_id: str = source["id"]
    ids = [source_id, target_id]
    last = {
        row["id"]: row["last_day"]
        for row in session.rows(
            "SELECT id, greatest(balance_date, (SELECT max(booking_date) FROM transactions WHERE user_id = $1"
            " AND account_id = accounts.id)) AS last_day FROM accounts WHERE user_id = $1 AND id = ANY($2::TEXT[])",
            *(user_id, ids),
        )
    }
    [ranked] = session.rows(
        "SELECT coalesce(sum(abs(iban_rank)), 0) + 1 AS beyond FROM account_aliases"
        " WHERE user_id = $1 AND account_id = ANY($2::TEXT[])",
        *(user_id, ids),
    )
    is_newer = last[target_id] is None or (last[source_id] is not None and last[source_id] >= last[target_id])
    rank = int(ranked["beyond"]) if is_newer else -int(ranked["beyond"])
    _move_ranks(session, user_id, source_id, rank)
    return {"iban": source["iban"], "iban_rank": rank}


def _move_ranks(session: Session, user_id: str, account_id: str, by: int) -> None:
    session.execute(
        "UPDATE account_aliases SET iban_rank = iban_rank + $3 WHERE user_id = $1 AND account_id = $2",
        *(user_id, account_id, by),
    )


def _merged_before(session: Session, user_id: str, account_id: str) -> list[str]:
    """The ids of the accounts and chosen sources that were merged into this one, and of those merged into them
    before."""
    rows = session.rows(
        "SELECT source_id, coalesce(merged_into, account_id) AS parent FROM account_aliases WHERE user_id = $1"
        " ORDER BY source_id",
        user_id,
    )
    found = [account_id]
    for parent in found:
        found += [row["source_id"] for row in rows if row["parent"] == parent and row["source_id"] not in found]
    return found[1:]


def _keep_whose(session: Session, user_id: str, account_id: str) -> None:
    """Keep whose each contribution to this account is while accounts are merged or separated (`told_of`)."""
    reported = contributions.of_accounts(session, user_id, [account_id])
    whose = _whose(session, user_id, reported)
    of_each: dict[str, list[int]] = defaultdict(list)
    for each in reported:
        if each.told_of is None:
            of_each[whose[each.sequence]].append(each.sequence)
    for told_of, sequences in of_each.items():
        session.execute(
            "UPDATE contributions SET told_of = $2 WHERE user_id = $1 AND sequence = ANY($3::BIGINT[])",
            *(user_id, told_of, sequences),
        )


def _whose(session: Session, user_id: str, reported: Sequence[Contribution]) -> dict[int, str]:
    """The account, or chosen source, whose each of these contributions is within the account that has it, by sequence:
    all of that account have to be given. One that came since the merge is of the part that its source names, else of
    the only one that this source told before; a balance that was said is of the account that it was said of."""
    rows = session.rows("SELECT source_id, account_id FROM account_aliases WHERE user_id = $1", user_id)
    merged = {(row["account_id"], row["source_id"]) for row in rows}
    told: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    whose: dict[int, str] = {}
    for each in reported:
        source = (each.account_id, each.connection_id, each.source_id)
        said_of = contributions.said_of(each)
        meant = (said_of or each.source_id, each.source_id)
        named = next((id_ for id_ in meant if (each.account_id, id_) in merged), each.account_id)
        if named == each.account_id and len(told[source]) == 1:
            (named,) = told[source]
        whose[each.sequence] = each.told_of or named
        told[source].add(whose[each.sequence])
    return whose


def _move_keys(session: Session, user_id: str, account_id: str, part_id: str) -> None:
    """Let live sources of which only the separated part has contributions mean that part."""
    told = (
        "(SELECT 1 FROM contributions AS told WHERE told.user_id = $1 AND told.account_id = {}"
        " AND told.connection_id = account_keys.connection_id AND told.source_id = account_keys.source_id)"
    )
    session.execute(
        "UPDATE account_keys SET account_id = $3 WHERE user_id = $1 AND account_id = $2"
        f" AND EXISTS {told.format('$3')} AND NOT EXISTS {told.format('$2')}",
        *(user_id, account_id, part_id),
    )
