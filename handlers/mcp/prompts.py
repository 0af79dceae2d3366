"""Prompts that a person picks in their assistant: read from handlers/mcp/prompts.json, with the person's arguments
filled in."""

import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

import orjson
from msgspec import Struct

from auth.principal import Principal
from handlers.mcp.catalogue import Catalogue, Tool, WrongArgument
from handlers.names import Json

FILE_NAME = "prompts.json"
FORMS = {
    "month": (re.compile("[0-9]{4}-(0[1-9]|1[0-2])"), "a month as YYYY-MM"),
    "days": (re.compile("[1-9]|[1-9][0-9]|1[0-7][0-9]|180"), "a whole number from 1 to 180"),
}
"""By argument: the pattern that it has to match, and the pattern in words."""


class Prompt(Struct, frozen=True, kw_only=True):
    """One prompt: how it is listed for clients, the tools that its text names, and the text with its arguments in
    braces. `arguments` are the words that stand for one that is left out or empty (programs send an empty text for a
    field that nobody filled in)."""

    listed: Json
    tools: tuple[Tool, ...]
    arguments: Mapping[str, str]
    text: str

    def is_allowed(self, caller: Principal) -> bool:
        """Whether the caller's grant lets every tool be called that the text names."""
        return all(tool.is_listed(caller) for tool in self.tools)

    def result(self, given: object) -> Json:
        """The result of prompts/get: the text as a message of the user, with the arguments `given` filled in. Raises
        WrongArgument."""
        values = {} if given is None else given
        if not isinstance(values, dict) or not values.keys() <= self.arguments.keys():
            raise WrongArgument(f"arguments: must be an object with any of: {', '.join(self.arguments)}.")
        chosen = {name: values.get(name, "") or otherwise for name, otherwise in self.arguments.items()}
        for name, value in chosen.items():
            pattern, form = FORMS[name]
            if value != self.arguments[name] and not (isinstance(value, str) and pattern.fullmatch(value)):
                raise WrongArgument(f"{name}: must be {form}.")
        content = {"type": "text", "text": self.text.format_map(chosen)}
        return {"description": self.listed["description"], "messages": [{"role": "user", "content": content}]}


def prompts(catalogue: Catalogue) -> Mapping[str, Prompt]:
    """All prompts by name, in the order of prompts.json; raises KeyError for a prompt that names an unknown tool."""
    document = orjson.loads((resources.files("handlers.mcp") / FILE_NAME).read_bytes())
    return {described["name"]: _prompt(described, catalogue) for described in document["prompts"]}


def _prompt(described: Mapping[str, Any], catalogue: Catalogue) -> Prompt:
    arguments: Mapping[str, Mapping[str, str]] = described["arguments"]
    return Prompt(
        listed={
            **{name: described[name] for name in ("name", "title", "description")},
            "arguments": [
                {"name": name, "description": each["description"], "required": False}
                for name, each in arguments.items()
            ],
        },
        tools=tuple(catalogue.tools[name] for name in described["tools"]),
        arguments={name: each["otherwise"] for name, each in arguments.items()},
        text=described["text"],
    )
