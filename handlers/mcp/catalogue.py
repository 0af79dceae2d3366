"""The tools as clients list them: handlers/mcp/tools.json, with arguments described by the contract."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import orjson
from jsonschema import Draft202012Validator, ValidationError

from auth.principal import Principal
from handlers.http.steps.bodies import RULES, in_words
from handlers.mcp.schemas import Contract, Json
from handlers.operations import GIVES_FIGURES, SHOWS_BOOKINGS

FILE_NAME = "tools.json"


class WrongArgument(Exception):
    """An argument that a tool does not take; the message says what is allowed and never repeats what came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool: what clients list of it, which scopes its operations ask for, and what its arguments must be."""

    name: str
    operations: Sequence[str]
    scopes: frozenset[str]
    listed: Json
    validator: Draft202012Validator

    def is_hidden(self, caller: Principal) -> bool:
        """Whether it may show bookings, and the caller may read figures only."""
        return caller.figures_only and not {*SHOWS_BOOKINGS, *GIVES_FIGURES}.isdisjoint(self.operations)

    def is_listed(self, caller: Principal) -> bool:
        """Whether the grant of this caller lets it be called."""
        return self.scopes <= caller.scopes and not self.is_hidden(caller)

    def arguments(self, given: object) -> Json:
        """The arguments with the defaults of those that were left out; raises WrongArgument."""
        values = {} if given is None else given
        properties: Json = self.listed["inputSchema"]["properties"]
        error = next(iter(sorted(self.validator.iter_errors(values), key=lambda each: list(each.path))), None)
        if error is not None or not isinstance(values, dict):
            raise WrongArgument(_sentence(error, properties))
        defaults = {name: schema["default"] for name, schema in properties.items() if "default" in schema}
        return {**dict.fromkeys(properties), **defaults, **values}


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """All tools by name, in the order of the file, and what a model is told before it uses any."""

    instructions: str
    tools: Mapping[str, Tool]

    def allowed(self, caller: Principal) -> list[Json]:
        """What is listed to whom the grant of this caller was given."""
        return [tool.listed for tool in self.tools.values() if tool.is_listed(caller)]


def catalogue(contract: Contract) -> Catalogue:
    """The catalogue of this contract; raises ValueError or KeyError where the two do not fit."""
    document = orjson.loads((resources.files("handlers.mcp") / FILE_NAME).read_bytes())
    tools = [_tool(described, contract) for described in document["tools"]]
    return Catalogue(instructions=document["instructions"], tools={tool.name: tool for tool in tools})


def _tool(described: Mapping[str, Any], contract: Contract) -> Tool:
    input_schema = {
        "type": "object",
        "properties": {name: _argument(schema, contract) for name, schema in described["arguments"].items()},
        "required": described["required"],
        "additionalProperties": False,
    }
    return Tool(
        name=described["name"],
        operations=described["operations"],
        scopes=frozenset(scope for name in described["operations"] for scope in contract.scopes(name)),
        listed={
            **{name: described[name] for name in ("name", "title", "description")},
            "inputSchema": _readable(input_schema),
            "outputSchema": described["outputSchema"],
            "annotations": described["annotations"],
        },
        validator=Draft202012Validator(input_schema),
    )


def _readable(schema: Any) -> Any:
    """The schema without patterns and widths of integers: they are checked, and say nothing to a model that the
    description does not."""
    if not isinstance(schema, dict):
        return schema
    return {
        name: _readable(value)
        for name, value in schema.items()
        if not (name == "pattern" or (name == "format" and value == "int32"))
    }


def _argument(schema: Mapping[str, Any], contract: Contract) -> Json:
    """A schema in which `from` is replaced by what it names, and what stands beside it counts more."""
    told = {name: value for name, value in schema.items() if name != "from"}
    if "items" in told:
        told["items"] = _without_words(_argument(told["items"], contract))
    return {**contract.argument(schema["from"]), **told} if "from" in schema else told


def _without_words(schema: Json) -> Json:
    return {name: value for name, value in schema.items() if name != "description"}


def _sentence(error: ValidationError | None, properties: Mapping[str, Json]) -> str:
    """What is allowed, from the schema alone."""
    if error is None or not error.absolute_path:
        if error is not None and error.validator == "required":
            return in_words("{}: must be given.", error)
        return f"The arguments must be an object with any of: {', '.join(properties)}."
    name = error.absolute_path[0]
    rule = {"minimum": "must be at least {}", "maximum": "must be at most {}", **RULES}.get(str(error.validator))
    if rule is None:
        return f"{name}: contains characters that are not allowed. {properties[str(name)].get('description', '')}"
    return f"{name}: {in_words(rule, error)}."
