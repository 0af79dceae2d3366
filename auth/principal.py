"""The principal of a request: what a verified access token says, without how it was verified."""

from msgspec import Struct

PAGE = "bankdata-page"


class Coverage(Struct, frozen=True):
    """The accounts that a grant covers: `accounts`, or with `is_all_but` all except these, also later ones."""

    accounts: frozenset[str]
    is_all_but: bool = False

    def covers(self, account_id: str) -> bool:
        """Whether this account is covered by the grant."""
        return (account_id in self.accounts) != self.is_all_but

    def without(self, account_ids: frozenset[str]) -> "Coverage":
        """What is covered, but none of these accounts."""
        named = self.accounts | account_ids if self.is_all_but else self.accounts - account_ids
        return Coverage(named, self.is_all_but)


class Principal(Struct, frozen=True, kw_only=True):
    """The user behind an access token, what the token allows, and whether the user's subscription is active.

    `coverage` None means all accounts; with `is_their_own` it leaves out only what others share with the user, so that
    the caller changes what is the user's as one who may read everything. With `figures_only`, neither bookings nor
    payees may be read; with `full_numbers`, assistants may read whole account numbers. `session` is the browser
    session that the page's token belongs to.
    """

    user_id: str
    client_id: str
    scopes: frozenset[str]
    grant_id: str | None
    has_subscription: bool
    session: str | None = None
    coverage: Coverage | None = None
    is_their_own: bool = False
    figures_only: bool = False
    full_numbers: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the grant is of all that is the user's own."""
        return self.coverage is None or self.is_their_own

    def covers(self, account_id: str) -> bool:
        """Whether this account of the user may be read."""
        return self.coverage is None or self.coverage.covers(account_id)
