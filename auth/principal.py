"""Who a request acts for: what a verified access token says, and nothing of how it was verified."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The user behind an access token, what the token allows, and whether the user's subscription is active."""

    user_id: str
    client_id: str
    scopes: frozenset[str]
    grant_id: str | None
    has_subscription: bool
