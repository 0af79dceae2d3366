"""Who a request acts for: what a verified access token says, and nothing of how it was verified."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Coverage:
    """The accounts that a grant covers: these, or all but these (`is_all_but`), later ones too."""

    accounts: frozenset[str]
    is_all_but: bool = False

    def covers(self, account_id: str) -> bool:
        """Whether this account is one of them."""
        return (account_id in self.accounts) != self.is_all_but


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The user behind an access token, what the token allows, and whether the user's subscription is active.

    `coverage` None: all accounts. `figures_only`: no bookings, no payees. `full_numbers`: assistants may read account
    numbers whole.
    """

    user_id: str
    client_id: str
    scopes: frozenset[str]
    grant_id: str | None
    has_subscription: bool
    coverage: Coverage | None = None
    figures_only: bool = False
    full_numbers: bool = False

    def covers(self, account_id: str) -> bool:
        """Whether this account of the user may be read."""
        return self.coverage is None or self.coverage.covers(account_id)
