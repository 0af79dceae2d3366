"""Turns schemas of the contract (OpenAPI 3.0) into those of tool arguments: JSON Schema without references."""

from collections.abc import Mapping
from functools import reduce
from operator import getitem
from typing import Any

from handlers.names import Json
from handlers.web.framework import METHODS

_NO_JSON_SCHEMA = frozenset({"example", "nullable", "discriminator", "xml", "externalDocs", "deprecated"})
_ALTERNATIVES = frozenset({"anyOf", "oneOf", "allOf", "not"})


class Contract:
    """The parts of the contract that tools are made of: its operations, scopes and schemas."""

    def __init__(self, document: Json) -> None:
        """`document` is the contract with each reference replaced by what it refers to."""
        self._document = document
        self.operations: dict[str, tuple[str, str, Json]] = {
            operation["operationId"]: (path, method, operation)
            for path, item in self._document["paths"].items()
            for method, operation in item.items()
            if method in METHODS
        }

    def scopes(self, operation_id: str) -> set[str]:
        """The scopes that an operation requires, all of them."""
        requirements = self.operations[operation_id][2]["security"]
        return {scope for requirement in requirements for named in requirement.values() for scope in named}

    def parameters(self, operation_id: str) -> list[Json]:
        """The parameters of an operation as the contract describes them, those in the path included, the body not."""
        found: list[Json] = self.operations[operation_id][2].get("parameters", [])
        return found

    def argument(self, source: str) -> Json:
        """The JSON Schema at a pointer such as `#/components/...`, or of a parameter such as
        `listTransactions.category`, the latter with its description. Raises ValueError for schemas with alternatives
        (anyOf and the like)."""
        if source.startswith("#"):
            return _as_json_schema(reduce(getitem, source.removeprefix("#/").split("/"), self._document))
        operation_id, _, name = source.partition(".")
        found = next(each for each in self.parameters(operation_id) if each["name"] == name)
        return {**_as_json_schema(found["schema"]), "description": found["description"]}


def _as_json_schema(schema: Mapping[str, Any]) -> Json:
    if found := _ALTERNATIVES & schema.keys():  # raised at the start, for a developer who adds an argument
        raise ValueError(f"arguments of tools have no {', '.join(sorted(found))}: strict callers refuse them")
    kept = {name: value for name, value in schema.items() if name not in _NO_JSON_SCHEMA}
    if schema.get("nullable"):
        kept["type"] = [schema["type"], "null"]
    return kept
