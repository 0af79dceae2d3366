"""GET and PATCH /profile: who is signed in, and the time zone and currency of their figures."""

from collections.abc import Mapping
from datetime import datetime, time
from typing import Any

from analytics.currencies import EURO
from analytics.messages import Saying, message
from handlers.names import Json
from handlers.operations.events.event_shapes import EventIds
from handlers.operations.selection import owner_of
from handlers.web.errors import BadRequest
from handlers.web.request import Request
from handlers.work.services import Services
from storage import users
from storage.events import outbox


class NoRate(Saying):
    """Raised for a home currency without a reference rate of the European Central Bank: amounts in other currencies
    could not be converted to it."""

    def __init__(self, currency: str) -> None:
        super().__init__(
            "{currency} has no reference rate of the European Central Bank. Try EUR, USD or CHF.",
            currency=repr(currency),
        )


def get_profile(services: Services, request: Request) -> Json:
    """The user's name and home currency, the time zone of the service, today's date there, and the id after which a
    stream of events tells what changes after this answer."""
    user_id = request.principal.user_id
    passed = outbox.position_of(services.store.state(user_id))  # before anything else is read
    ids = EventIds(incarnation=services.incarnation, user_id=user_id)
    user = services.user(user_id)
    return {
        "name": user.name,
        "homeCurrency": user.home_currency,
        "timeZone": services.settings.time_zone.key,
        "today": services.clock.today().isoformat(),
        "lastEventId": ids.write(passed, datetime.combine(services.clock.now(), time.min)),  # the same all day
    }


def change_profile(services: Services, request: Request, *, body: Mapping[str, Any]) -> Json:
    """Change the user's home currency if the body names one, and return the profile. Raises BadRequest for a currency
    without a reference rate."""
    user_id, currency = owner_of(request), body.get("homeCurrency")
    if currency is not None:
        try:
            keep_home_currency(services, user_id, currency)
        except NoRate as error:
            raise BadRequest("homeCurrency: {reason}", reason=message(str(error))) from error
    return get_profile(services, request)


def keep_home_currency(services: Services, user_id: str, currency: str) -> None:
    """Store the user's home currency, in which figures over several currencies are given (decision 19); raises NoRate,
    and stores nothing, for one without a reference rate."""
    if currency != EURO and currency not in services.rates["currency"]:
        raise NoRate(currency)
    services.of(user_id).atomically(lambda session: users.set_home_currency(session, user_id, currency))
