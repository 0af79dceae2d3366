"""Commands on targets, amounts to compare with what is spent: set one, list them with the amounts spent."""

from datetime import date
from decimal import Decimal

from analytics.periods import InvalidMonth, month_of
from auth.principal import Principal
from handlers.commands.accounts import AMOUNT
from handlers.commands.control_socket import CommandError, Report
from handlers.commands.words.own_categories import place_named
from handlers.json_shapes import money_text
from handlers.operations.categories.targets import code_of, comparisons, put
from handlers.work.services import Services
from storage.annotations import annotations
from storage.database import Transaction
from storage.users import User


def list_targets(services: Services, report: Report, *, user: User, month: str | None) -> None:
    """List the targets that hold in a month (None: this one), with what was spent in that month or its year and what is
    left; a note names the currencies without a reference rate, whose bookings are left out."""
    own = annotations.own_categories(services.everybody, user.id)
    compared, left_out = comparisons(services, _everything(user), _month(services, month))
    for target, place, _, spent in compared:
        code, currency = code_of(place), target.currency
        name = f"“{own[code].name}” ({code})" if code in own else code
        amount, used, left = (money_text(each, currency) for each in (target.amount, spent, target.amount - spent))
        since = target.first_month.isoformat()[:7]
        report.line(f"{name}: {amount} {currency} a {target.period} since {since}, {used} spent, {left} left")
    if left_out:
        report.note(f"Without bookings in {', '.join(sorted(left_out))}: there is no reference rate.")


def set_target(
    services: Services, report: Report, *, user: User, place: str, amount: str, period: str, month: str | None
) -> None:
    """Set the amount to compare with what is spent at a place in each `period` (month or year), from a month (None:
    this one) on; 0 ends the target that held."""
    first = _month(services, month)
    if not AMOUNT.fullmatch(amount) or amount.startswith("-"):
        raise CommandError("An amount is 0 or more, such as 400 or 12.50.")

    def work(session: Transaction) -> None:
        put(services, session, _everything(user), place_named(session, user.id, place), Decimal(amount), period, first)

    services.alone(user.id, work)
    report.note("Set.")


def _everything(user: User) -> Principal:
    return Principal(
        user_id=user.id, client_id="", scopes=frozenset(), grant_id=None, has_subscription=user.has_subscription
    )


def _month(services: Services, text: str | None) -> date:
    if text is None:
        return services.clock.today().replace(day=1)
    try:
        return month_of(text)
    except InvalidMonth as error:
        raise CommandError("A month is written YYYY-MM.") from error
