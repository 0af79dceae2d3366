"""What generators of clients need of openapi.json: examples that hold, a marked beginning, plain alternatives."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from openapi_schema_validator import OAS30Validator

from handlers.web.app import CONTRACT_FILE

CONTRACT: dict[str, Any] = json.loads(CONTRACT_FILE.read_bytes())
OPERATIONS = [operation for item in CONTRACT["paths"].values() for operation in item.values()]


def whole(node: Any) -> Any:
    """A node with each reference replaced by what it leads to."""
    if isinstance(node, list):
        return [whole(each) for each in node]
    if not isinstance(node, dict):
        return node
    if "$ref" not in node:
        return {key: whole(value) for key, value in node.items()}
    found: Any = CONTRACT
    for part in node["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return whole(found)


def bodies() -> Iterator[tuple[str, dict[str, Any]]]:
    for operation in map(whole, OPERATIONS):
        answers = {status: answer for status, answer in operation["responses"].items() if status.startswith("2")}
        for name, place in {"request": operation.get("requestBody", {}), **answers}.items():
            for content in place.get("content", {}).values():
                yield f"{operation['operationId']} {name}", content


@pytest.mark.requirement("contract.fields")
@pytest.mark.parametrize(("name", "content"), list(bodies()), ids=lambda value: value if isinstance(value, str) else "")
def test_each_body_has_an_example_that_its_schema_allows(name: str, content: dict[str, Any]) -> None:
    assert [error.message for error in OAS30Validator(content["schema"]).iter_errors(content["example"])] == [], name


@pytest.mark.requirement("contract.no-python")
def test_the_eight_operations_of_the_interface_come_first_and_are_marked() -> None:
    marked = ["Interface" in operation["tags"] for operation in OPERATIONS]
    assert marked == [True] * 8 + [False] * (len(OPERATIONS) - 8)
    assert CONTRACT["tags"][0]["name"] == "Interface"
    used = {tag for operation in OPERATIONS for tag in operation["tags"]}
    assert used == {tag["name"] for tag in CONTRACT["tags"]}


@pytest.mark.requirement("contract.bounds")
def test_no_alternative_is_null_alone_and_no_list_of_values_has_a_length() -> None:
    text = json.dumps(whole(CONTRACT["components"]["schemas"]))
    assert '"enum": [null]' not in text
    nodes: list[Any] = [CONTRACT]
    while nodes:
        node = nodes.pop()
        nodes.extend(node.values() if isinstance(node, dict) else node if isinstance(node, list) else [])
        assert not (isinstance(node, dict) and isinstance(node.get("enum"), list) and "maxLength" in node), node
