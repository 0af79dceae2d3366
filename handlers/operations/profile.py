"""GET and PATCH /profile: who is signed in, and the time zone and currency of their figures."""

from collections.abc import Mapping
from typing import Any

from analytics.currencies import EURO
from handlers.http.errors import BadRequest
from handlers.http.request import Request
from handlers.names import Json
from handlers.operations.selection import owner_of
from handlers.services import Services
from storage import users


class NoRate(Exception):
    """The home currency has no reference rate, so nothing can be converted to it."""

    def __init__(self, currency: str) -> None:
        super().__init__(f"{currency!r} has no reference rate of the European Central Bank. Try EUR, USD or CHF.")


def get_profile(services: Services, request: Request) -> Json:
    """The user's name and home currency, and the service's time zone and today."""
    user_id = request.principal.user_id
    user = services.user(user_id)
    return {
        "name": user.name,
        "homeCurrency": user.home_currency,
        "timeZone": services.settings.time_zone.key,
        "today": services.clock.today().isoformat(),
    }


def change_profile(services: Services, request: Request, *, body: Mapping[str, Any]) -> Json:
    """Change the currency of the user's figures over several currencies, and return the profile."""
    user_id, currency = owner_of(request), body.get("homeCurrency")
    if currency is not None:
        try:
            keep_home_currency(services, user_id, currency)
        except NoRate as error:
            raise BadRequest(f"homeCurrency: {error}") from error
    return get_profile(services, request)


def keep_home_currency(services: Services, user_id: str, currency: str) -> None:
    """Store the currency of the user's figures over several currencies (decision 19); raises NoRate for one without a
    rate."""
    if currency != EURO and currency not in services.rates["currency"]:
        raise NoRate(currency)
    services.of(user_id).atomically(lambda session: users.set_home_currency(session, user_id, currency))
