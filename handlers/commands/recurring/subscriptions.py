"""Recurring payments: listed, and confirmed, dismissed or left to the service again."""

from analytics.recurring.history import listed
from handlers.commands.control_socket import CommandError, Report
from handlers.operations.recurring.confirmation import NoSuchPayment, decide
from handlers.services import Services
from handlers.sync.detection import recurring_of
from storage import accounts, users
from storage.accounts import Selected


def list_subscriptions(services: Services, report: Report, *, user: str) -> None:
    """Every recurring payment with its id, in and out, ended and dismissed ones too."""
    owner = users.named(services.everybody, user)
    everything = Selected(accounts.of_user(services.everybody, owner.id), is_everything=True)
    found = recurring_of(services.everybody, owner.id, everything, today=services.clock.today())
    for row in found.iter_rows(named=True):
        amount = f"{listed(row['amount'], row['currency'])} {row['currency']}"
        ended = "ended" if row["is_over"] else "goes on"
        told = (row["id"], row["direction"], ended, row["frequency"], amount, row["confirmation"], row["merchant_name"])
        report.line("\t".join(told))


def decide_subscription(
    services: Services, report: Report, *, user: str, subscription_id: str, confirmation: str
) -> None:
    """Remember what a person says about one, in place of what they said before."""
    owner, clock = users.named(services.everybody, user), services.clock
    try:
        told = decide(services.everybody, owner.id, subscription_id, confirmation, now=clock.now(), today=clock.today())
    except NoSuchPayment:
        raise CommandError(
            "The user has no recurring payment of this id. `bankdata subscriptions list` shows them."
        ) from None
    report.note(f"{told['merchantName']}: {confirmation}.")
