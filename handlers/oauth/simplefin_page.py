"""The SimpleFIN part of /account: a setup token for an app, shown once."""

from urllib.parse import urlsplit

from starlette.responses import Response

from handlers.loopback import is_loopback
from handlers.oauth.choices import Choices, days_to_choose
from handlers.oauth.site import Site, Visit
from storage.oauth.grants import Terms
from storage.users import User

PURPOSE = "simplefin"


def token_page(site: Site, visit: Visit, user: User, *, terms: Terms, chosen: Choices) -> Response:
    """Make a setup token with the person's choices, and show its page; raises OAuthError for a name that cannot be
    shown."""
    name = visit.form.get("name", "")
    lifetime = chosen.lifetime(days_to_choose(site.policy.grant_lifetime))
    token = site.server.simplefin.setup_token(user.id, name, terms=terms, lifetime=lifetime)
    at = urlsplit(site.policy.public_url)
    return site.page(
        "simplefin_token.html",
        visit.words,
        name=name.strip(),
        setup_token=token,
        address=site.policy.public_url,
        is_loopback=is_loopback(at.hostname or ""),
        is_in_clear=at.scheme == "http",
    )
