"""The ways to people that this server has, by name, as its settings say."""

from collections.abc import Mapping

from connectors.ways import Way
from connectors.ways.email import Mail
from handlers.settings import Settings


def ways_of(settings: Settings) -> Mapping[str, Way]:
    """The ways by name; one that is not set up here is missing."""
    found: dict[str, Way] = {}
    if settings.smtp_url is not None:
        found["email"] = Mail(settings.smtp_url, settings.smtp_from or settings.smtp_url.sender)
    return found
