"""The three scopes of the interface (5.1) and how they are written in requests and tokens."""

from collections.abc import Iterable

READ_ACCOUNTS = "read:accounts"
READ_TRANSACTIONS = "read:transactions"
READ_CASHFLOW = "read:cashflow"

SCOPES = (READ_ACCOUNTS, READ_TRANSACTIONS, READ_CASHFLOW)


def scope_set(text: str) -> frozenset[str] | None:
    """The scopes of a space-separated list, or None when one of them is unknown or there is none.

    "The value of the scope parameter is expressed as a list of space-delimited, case-sensitive strings."
    RFC 6749 section 3.3
    """
    names = [name for name in text.split(" ") if name]
    if not names or any(name not in SCOPES for name in names):
        return None
    return frozenset(names)


def scope_text(scopes: Iterable[str]) -> str:
    """The scopes in the order of the interface, separated by spaces."""
    wanted = set(scopes)
    return " ".join(name for name in SCOPES if name in wanted)
