"""Commands on recurring payments: list, confirm, dismiss or reset them, and add or remove one by hand."""

from datetime import date
from decimal import Decimal

from analytics.minor_digits import in_digits
from analytics.recurring.added import AddedPayment
from analytics.recurring.directions import INCOMING, OUTGOING
from handlers.commands.accounts import AMOUNT
from handlers.commands.control_socket import CommandError, Report
from handlers.operations.recurring import add, decide
from handlers.web.errors import NotFound
from handlers.work.services import Services
from handlers.work.sync.detection import recurring_of
from storage import accounts
from storage.database import Transaction
from storage.recurring import added
from storage.users import User

FREQUENCIES = {"week": "weekly", "two-weeks": "biweekly", "month": "monthly", "quarter": "quarterly", "year": "yearly"}


def list_subscriptions(services: Services, report: Report, *, user: User) -> None:
    """List every recurring payment of a user with its id, incoming and outgoing, ended and dismissed ones too, one a
    line; those added by hand come last."""
    everything = accounts.everything(services.everybody, user.id)
    for each in recurring_of(services.everybody, user.id, everything, today=services.clock.today()):
        amount = f"{in_digits(each.amount, each.currency)} {each.currency}"
        ended = "ended" if each.is_over else "goes on"
        columns = (each.id, each.direction, ended, each.frequency, amount)
        report.line("\t".join((*columns, each.confirmation, each.merchant_name)))


def decide_subscription(
    services: Services, report: Report, *, user: User, subscription_id: str, confirmation: str
) -> None:
    """Store what a person says about a recurring payment (confirmed, dismissed, or none, which only removes what was
    said), replacing what they said before. One added by hand is removed unless confirmed. CommandError for an unknown
    id."""
    try:
        payment = decide(services, user.id, subscription_id, confirmation)
    except NotFound:
        raise CommandError(
            "The user has no recurring payment of this id. `bankdata subscriptions list` shows them."
        ) from None
    report.note(f"{payment['merchantName']}: {confirmation}.")


def add_subscription(
    services: Services,
    report: Report,
    *,
    user: User,
    name: str,
    amount: str,
    every: str,
    next_day: str,
    account: str,
    is_incoming: bool,
) -> None:
    """Add a recurring payment that detection does not find, and print its id; adding it again with another amount or
    day changes it."""
    chosen = accounts.resolve(services.everybody, user.id, account)
    if not AMOUNT.fullmatch(amount):
        raise CommandError("An amount is a number above 0 such as 12.99; --incoming says that it comes in.")

    def work(session: Transaction) -> AddedPayment:
        return add(
            session,
            user.id,
            chosen,
            name=name,
            amount=Decimal(amount),
            frequency=FREQUENCIES[every],
            next_day=date.fromisoformat(next_day),
            direction=INCOMING if is_incoming else OUTGOING,
            today=services.clock.today(),
        )

    payment = services.everybody.atomically(work)
    report.line(payment.id)
    report.note(f"{payment.name}: added. `bankdata subscriptions remove {payment.id}` takes it away.")


def remove_subscription(services: Services, report: Report, *, user: User, subscription_id: str) -> None:
    """Remove a recurring payment that was added by hand; CommandError for an unknown id, and for one that the service
    detected."""
    if not services.everybody.atomically(lambda session: added.remove(session, user.id, subscription_id)):
        raise CommandError("The user has added no recurring payment of this id.")
    report.note("Removed.")
