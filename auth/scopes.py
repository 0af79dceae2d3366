"""The three scopes of the interface (5.1), further ones that a person has to tick, and their spelling."""

from collections.abc import Iterable

READ_ACCOUNTS = "read:accounts"
READ_TRANSACTIONS = "read:transactions"
READ_CASHFLOW = "read:cashflow"

WRITE_IMPORTS = "write:imports"
WRITE_RULES = "write:rules"
WRITE_ACCOUNTS = "write:accounts"

READ_ANNOTATIONS = "read:annotations"
WRITE_ANNOTATIONS = "write:annotations"

SCOPES = (READ_ACCOUNTS, READ_TRANSACTIONS, READ_CASHFLOW)  # every app may ask for these, and gets them by default
TICKED_SCOPES = (  # for our own page, and for apps that the operator names
    WRITE_IMPORTS,
    WRITE_RULES,
    WRITE_ACCOUNTS,
    READ_ANNOTATIONS,
    WRITE_ANNOTATIONS,
)
ALL_SCOPES = SCOPES + TICKED_SCOPES


def scope_set(text: str) -> frozenset[str] | None:
    """The scopes of ours in a space-separated list, which may hold others beside them, such as openid; None without any
    of ours.

    "The authorization server MAY fully or partially ignore the scope requested by the client" RFC 6749 section 3.3
    """
    return frozenset(text.split(" ")).intersection(ALL_SCOPES) or None


def scope_text(scopes: Iterable[str]) -> str:
    """The scopes separated by spaces, in the order of ALL_SCOPES."""
    wanted = set(scopes)
    return " ".join(name for name in ALL_SCOPES if name in wanted)


def scope_without_bookings(text: str) -> str:
    """The scopes of a space-separated list without those about single bookings, in the order of ALL_SCOPES; for a grant
    that covers figures only."""
    of_bookings = (READ_TRANSACTIONS, READ_ANNOTATIONS, WRITE_ANNOTATIONS)
    return scope_text(name for name in text.split() if name not in of_bookings)
