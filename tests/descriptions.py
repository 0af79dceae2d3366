"""Connexion holds every description against OpenAPI's schema, which takes a third of a second: once for each."""

from typing import Any

import orjson
from connexion.spec import Specification


def hold_each_once() -> None:
    """From now on a description that was held against the schema in this process is not held against it again."""
    insides: Any = Specification
    validate = insides._validate_spec.__func__
    if validate.__name__ == "once":
        return
    held: set[bytes] = set()

    def once(cls: type[Specification], spec: dict[str, Any]) -> None:
        content = orjson.dumps(spec, option=orjson.OPT_SORT_KEYS)
        if content not in held:
            validate(cls, spec)
            held.add(content)

    insides._validate_spec = classmethod(once)
