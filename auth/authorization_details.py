"""Authorization details (RFC 9396), with which an app says in advance what it wants and learns what it got. There is
one type, `account_information`, whose members preset the boxes of the consent page; the person decides with the boxes,
whatever was asked for."""

from typing import Annotated, Any, Literal, get_args

import msgspec

from auth.errors import InvalidAuthorizationDetails
from auth.policy import Resource
from auth.scopes import READ_ACCOUNTS, READ_CASHFLOW, READ_TRANSACTIONS
from storage.oauth.grants import Terms

TYPE = "account_information"  # as in the examples of RFC 9396
CHARACTERS_MAX = 4096
ACCOUNTS_MAX = 100

Days = Literal[365, 90, 30, 7, 1]
LASTS_DAYS: tuple[int, ...] = get_args(Days)  # what a person can choose, the longest first: lifetimes.GRANT

Action = Literal["list_accounts", "read_balances", "read_transactions", "read_cashflow"]
SCOPE_OF: dict[Action, str] = {
    "list_accounts": READ_ACCOUNTS,
    "read_balances": READ_ACCOUNTS,
    "read_transactions": READ_TRANSACTIONS,
    "read_cashflow": READ_CASHFLOW,
}


class NamedAccount(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """An account named either by our id or by its IBAN; raises ValueError for both or neither."""

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=100)] | None = None
    iban: Annotated[str, msgspec.Meta(min_length=1, max_length=42)] | None = None

    def __post_init__(self) -> None:
        if (self.id is None) == (self.iban is None):
            raise ValueError("an account has an id or an IBAN")

    def is_of(self, account_id: str, iban: str | None) -> bool:
        """Whether the account with this id and IBAN is meant; blanks and case of the named IBAN do not matter."""
        return self.id == account_id if self.iban is None else "".join(self.iban.split()).upper() == iban


class AccountInformation(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True, rename="camel"):
    """The access that an app asks for, as a preset for the consent page. A member left out asks for everything, except
    for `full_numbers` (whole account numbers), which has to be asked for, and `later_accounts`
    (`asks_for_later_accounts`).

    `accounts` that the person does not have are ignored, and the app does not learn which.
    """

    type: Literal["account_information"]
    actions: Annotated[tuple[Action, ...], msgspec.Meta(min_length=1, max_length=10)] | None = None
    locations: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=10)] | None = None
    accounts: Annotated[tuple[NamedAccount, ...], msgspec.Meta(min_length=1, max_length=ACCOUNTS_MAX)] | None = None
    later_accounts: bool | None = None
    full_numbers: bool = False
    lasts_days: Days | None = None

    @property
    def scopes(self) -> frozenset[str] | None:
        """The scopes of the requested actions; None where the app named no actions."""
        return frozenset(SCOPE_OF[action] for action in self.actions) if self.actions is not None else None

    @property
    def asks_for_bookings(self) -> bool:
        """Whether the app asks for single bookings, and not only for balances and sums."""
        return self.actions is None or "read_transactions" in self.actions

    @property
    def asks_for_later_accounts(self) -> bool:
        """Whether the app asks for accounts that are added later; it does if it names no accounts, unless it says
        otherwise."""
        return self.accounts is None if self.later_accounts is None else self.later_accounts


def parse(text: str, *, resource: Resource | None, address: str) -> AccountInformation:
    """The one object in the text of the parameter authorization_details; `address` is that of the requested `resource`.
    Raises InvalidAuthorizationDetails, also for `locations` other than this address, and for `full_numbers` of another
    resource than that of assistants.

    "The AS MUST refuse to process any unknown authorization details type or authorization details not conforming to the
    respective type definition." RFC 9396 section 5
    """
    if len(text) > CHARACTERS_MAX:
        raise InvalidAuthorizationDetails(f"authorization_details must have at most {CHARACTERS_MAX} characters.")
    try:
        (details,) = msgspec.json.decode(text, type=tuple[AccountInformation])
    except (msgspec.DecodeError, RecursionError):
        raise InvalidAuthorizationDetails() from None
    if any(location.removesuffix("/") != address for location in details.locations or ()):
        raise InvalidAuthorizationDetails("locations must be the address of the resource that is asked for.")
    if details.full_numbers and resource != "mcp":
        raise InvalidAuthorizationDetails("fullNumbers is for the interface for assistants.")
    return details


def as_text(details: AccountInformation) -> str:
    """The details as JSON, for storing them while the request waits; `from_text` reads it."""
    return msgspec.json.encode(details).decode()


def from_text(text: str) -> AccountInformation:
    """The details in a text that `as_text` wrote."""
    return msgspec.json.decode(text, type=AccountInformation)


def details_of_grant(
    terms: Terms, *, scope: str, account_ids: list[str], resource: Resource, address: str
) -> list[dict[str, Any]]:
    """The authorization details for a token answer, as a list with one object: what tokens with this `scope` may do
    under a grant with these terms for the `resource` at this `address`. `account_ids` are the accounts that the grant
    covers at present.

    "The authorization details attached to the access token MAY differ from what the client requests." RFC 9396 section
    7.1
    """
    scopes = set(scope.split())
    return [
        {
            "type": TYPE,
            "locations": [address],
            "actions": [action for action, needed in SCOPE_OF.items() if needed in scopes],
            "accounts": [{"id": account_id} for account_id in account_ids],
            "laterAccounts": terms.accounts is None or terms.all_but,
            **({"fullNumbers": terms.full_numbers} if resource == "mcp" else {}),
        }
    ]
