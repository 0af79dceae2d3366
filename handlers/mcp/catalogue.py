"""The tools as clients list them: read from handlers/mcp/tools.json, with arguments described by the contract."""

import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import orjson
from jsonschema import Draft202012Validator, ValidationError
from msgspec import Struct

from auth.principal import Principal
from handlers.mcp.schemas import Contract
from handlers.names import Json
from handlers.operations import GIVES_FIGURES, SHOWS_BOOKINGS
from handlers.web.steps.bodies import RULES, in_words

FILE_NAME = "tools.json"
DAY_LENGTH = len("2026-10-01")
DAY_WITH_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]", re.ASCII)
FORMS = {
    "string": "text in quotes",
    "integer": "a whole number such as 10",
    "number": "a number such as 86.5",
    "boolean": "true or false",
    "array": 'a list of texts such as ["a", "b"]',
    "object": "an object",
}
CASES = {"^[A-Z, ]*$": str.upper, "^[a-z_, ]*$": str.lower}
"""How codes are written, by the pattern of an argument that takes some."""
UNTOLD = frozenset(("pattern", "minLength", "maxLength", "minItems", "maxItems"))
A_DAY = "a day such as 2026-10-01"


class WrongArgument(Exception):
    """An argument does not fit its tool or prompt; the message says what is allowed and never repeats what came."""


class Tool(Struct, frozen=True, kw_only=True):
    """One tool: how it is listed for clients, the operations that it calls and their scopes, `more_scopes` that some of
    its arguments need, the schema of its arguments, and `hints`, what arguments of these names are like."""

    name: str
    operations: Sequence[str]
    scopes: frozenset[str]
    more_scopes: Mapping[str, frozenset[str]]
    listed: Json
    validator: Draft202012Validator
    hints: Mapping[str, str]

    def is_hidden(self, caller: Principal) -> bool:
        """Whether the caller may read figures only while the tool calls an operation that may show bookings."""
        return caller.figures_only and not {*SHOWS_BOOKINGS, *GIVES_FIGURES}.isdisjoint(self.operations)

    def is_listed(self, caller: Principal) -> bool:
        """Whether the caller's grant lets this tool be called: it has all its scopes, and the tool is not hidden."""
        return self.scopes <= caller.scopes and not self.is_hidden(caller)

    def scopes_for(self, given: object) -> frozenset[str]:
        """The scopes that a call with these arguments needs, which may be of any form yet."""
        named = [scopes for name, scopes in self.more_scopes.items() if isinstance(given, dict) and given.get(name)]
        return self.scopes.union(*named)

    def arguments(self, given: object) -> Json:
        """The arguments of a call by name, with defaults for those left out, None where there is no default; raises
        WrongArgument."""
        properties: Json = self.listed["inputSchema"]["properties"]
        values = {} if given is None else given
        if isinstance(values, dict):
            schema: Any = self.validator.schema
            values = {name: _as_meant(value, schema["properties"].get(name, {})) for name, value in values.items()}
        error = next(iter(sorted(self.validator.iter_errors(values), key=lambda each: list(each.path))), None)
        if error is not None or not isinstance(values, dict):
            raise WrongArgument(_sentence(error, properties, self.hints))
        defaults = {name: schema["default"] for name, schema in properties.items() if "default" in schema}
        return {**dict.fromkeys(properties), **defaults, **values}


class Catalogue(Struct, frozen=True, kw_only=True):
    """All tools by name, in the order of tools.json, and the instructions that a model gets before it uses any."""

    instructions: str
    tools: Mapping[str, Tool]

    def listed_for(self, caller: Principal) -> list[Json]:
        """The description of every tool that the caller's grant lets be called, in the order of tools.json."""
        return [tool.listed for tool in self.tools.values() if tool.is_listed(caller)]


def catalogue(contract: Contract) -> Catalogue:
    """The catalogue for this contract; raises ValueError or KeyError where contract and tools.json do not fit
    together."""
    document = orjson.loads((resources.files("handlers.mcp") / FILE_NAME).read_bytes())
    described_first = [each["arguments"] for each in reversed(document["tools"])]  # later ones only refer to it
    hints = {name: schema.get("description", "") for arguments in described_first for name, schema in arguments.items()}
    tools = [_tool(described, contract, hints) for described in document["tools"]]
    return Catalogue(instructions=document["instructions"], tools={tool.name: tool for tool in tools})


def _tool(described: Mapping[str, Any], contract: Contract, hints: Mapping[str, str]) -> Tool:
    input_schema = {
        "type": "object",
        "properties": {name: _argument(schema, contract) for name, schema in described["arguments"].items()},
        **({"required": described["required"]} if described["required"] else {}),
        "additionalProperties": False,
    }
    return Tool(
        name=described["name"],
        operations=described["operations"],
        scopes=_scopes(described["operations"], contract),
        more_scopes={name: _scopes(each, contract) for name, each in described.get("operationsOf", {}).items()},
        listed={
            **{name: described[name] for name in ("name", "title", "description")},
            "inputSchema": _schema_for_models(input_schema),
            "outputSchema": described["outputSchema"],
            "annotations": described["annotations"],
        },
        validator=Draft202012Validator(input_schema),
        hints=hints,
    )


def _scopes(operations: Sequence[str], contract: Contract) -> frozenset[str]:
    return frozenset(scope for name in operations for scope in contract.scopes(name))


def _as_meant(value: Any, schema: Mapping[str, Any]) -> Any:
    """The argument in the form that its schema wants, where it can mean one thing only: a day with a time is that day,
    a number in quotes a number, a list of words those words by commas, and the other way round; codes are written as
    theirs are."""
    kind = schema.get("type")
    if kind == "string" and schema.get("format") == "date" and isinstance(value, str) and DAY_WITH_TIME.match(value):
        return value[:DAY_LENGTH]
    if kind == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value}"
    if kind == "string" and isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = ",".join(value)
    if isinstance(value, str) and schema.get("pattern") in CASES:
        return CASES[schema["pattern"]](value)
    if kind == "integer" and isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < DAY_LENGTH:
        return int(value)
    if kind == "boolean" and value in ("true", "false"):
        return value == "true"
    if kind == "array" and isinstance(value, str):
        return [each.strip() for each in value.split(",")]
    return value


def _schema_for_models(schema: Any) -> Any:
    """The schema without patterns, lengths and integer widths: they are checked, but tell a model nothing
    beyond the description."""
    if not isinstance(schema, dict):
        return schema
    return {
        name: _schema_for_models(value)
        for name, value in schema.items()
        if not (name in UNTOLD or (name == "format" and value == "int32"))
    }


def _argument(schema: Mapping[str, Any], contract: Contract) -> Json:
    """The schema of an argument, where `from` is replaced by the contract's schema that it names; members beside `from`
    take precedence."""
    own = {name: value for name, value in schema.items() if name != "from"}
    if "items" in own:
        own["items"] = _without_words(_argument(own["items"], contract))
    return {**contract.argument(schema["from"]), **own} if "from" in schema else own


def _without_words(schema: Json) -> Json:
    return {name: value for name, value in schema.items() if name != "description"}


def _sentence(error: ValidationError | None, properties: Mapping[str, Json], hints: Mapping[str, str]) -> str:
    """A sentence on what is allowed, made from the schema alone, never from what came; without an error, that the
    arguments have to be an object."""
    if error is None or not error.absolute_path:
        if error is not None and error.validator == "required":
            return in_words("{}: must be given.", error)
        return f"The arguments must be an object with any of: {', '.join(properties)}."
    name = error.absolute_path[0]
    schema = properties.get(str(name), {})
    if schema.get("format") == "date":
        return f"{name}: must be {A_DAY}."
    if error.validator == "type" and error.validator_value in FORMS:
        return f"{name}: must be {FORMS[error.validator_value]}."
    rule = {"minimum": "must be at least {}", "maximum": "must be at most {}", **RULES}.get(str(error.validator))
    if rule is None:
        return f"{name}: contains characters that are not allowed. {hints[str(name)]}"
    return f"{name}: {in_words(rule, error)}."
