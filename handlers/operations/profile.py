"""GET /profile: who is signed in, and whose calendar and money the figures are in."""

from handlers.http.request import Json, Request
from handlers.services import Services
from storage import users


def get_profile(services: Services, request: Request) -> Json:
    """The user's name and home currency, and the service's time zone and today."""
    user = users.find(services.database, request.principal.user_id)
    assert user is not None, "a request outlived its user"
    return {
        "name": user.name,
        "homeCurrency": user.home_currency,
        "timeZone": services.settings.time_zone.key,
        "today": services.clock.today().isoformat(),
    }
