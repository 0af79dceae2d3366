"""Merges and separates accounts, and updates what depends on them: which apps see them, and which payments recur."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from handlers.services import Services
from storage import accounts, transactions
from storage.accounts import StoredAccount
from storage.database import Transaction
from storage.transactions import Selection
from storage.undo_and_merge import merges
from storage.undo_and_merge.rebuild import Rebuilt
from storage.users import User


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The outcome of a merge: how many bookings the first account has, how many of those the second one has too, the
    balance of the merged account with its day, and how many apps saw one of the two but do not see the merged one."""

    rebuilt: Rebuilt
    bookings: int
    in_both: int
    balance: Decimal | None
    balance_date: date | None
    access_narrowed: int


def merge(services: Services, user: User, source: StoredAccount, target: StoredAccount, *, is_dry_run: bool) -> Merged:
    """Make the first account a part of the second one, and return the outcome; a dry run only computes it. Raises
    NotOneAccount."""
    grants = services.authorization.grants

    def work(session: Transaction) -> tuple[Rebuilt, StoredAccount]:
        rebuilt = merges.merge(session, user=user, source_id=source.id, target_id=target.id, now=services.clock.now())
        return rebuilt, next(each for each in accounts.every(session, user.id) if each.id == target.id)

    merges.check_mergeable(services.of(user.id), user.id, source_id=source.id, target_id=target.id)
    bookings = transactions.count(services.of(user.id), user.id, Selection(account_ids=[source.id]))
    is_new = source.same_as == target.id  # a new account: no app has been allowed or refused to see it by itself
    narrowed = [] if is_new else grants.widened_by_merge(user.id, source_id=source.id, target_id=target.id)
    if narrowed and not is_dry_run:
        grants.keep_exclusions(user.id, source_id=source.id, target_id=target.id)
    rebuilt, whole = services.change(user.id, work, is_dry_run=is_dry_run)
    return Merged(
        rebuilt=rebuilt,
        bookings=bookings,
        in_both=rebuilt.removed - rebuilt.added,
        balance=whole.balance,
        balance_date=whole.balance_date,
        access_narrowed=len(narrowed),
    )


def separate(services: Services, user: User, account_id: str) -> Rebuilt:
    """Make a merged account an account of its own again; raises NotMerged."""
    return services.change(
        user.id, lambda session: merges.separate(session, user=user, source_id=account_id, now=services.clock.now())
    )
