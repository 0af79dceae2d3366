"""Objects of the contract as Python has them, and their names: in camelCase there, in snake case here."""

import re
from functools import cache
from typing import Any

Json = dict[str, Any]

_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")


@cache
def python_name(name: str) -> str:
    """The name in snake case: accountIds becomes account_ids; a hyphen becomes an underscore too."""
    return _CAPITAL.sub(r"_\1", name).replace("-", "_").lower()


def contract_name(name: str) -> str:
    """The name in camelCase: list_accounts becomes listAccounts."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
