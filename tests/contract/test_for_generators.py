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
def test_the_eight_operations_of_the_interface_come_first_and_the_description_says_so() -> None:
    first = [operation["operationId"] for operation in OPERATIONS[:8]]
    assert first == [
        *("listAccounts", "listTransactions", "getTransaction", "getCashflow"),
        *("getSnapshot", "listSubscriptions", "startSync", "getSyncJob"),
    ]
    assert f"The first eight operations, `{first[0]}` to `{first[-1]}`," in CONTRACT["info"]["description"]


@pytest.mark.requirement("contract.bounds")
def test_no_name_is_made_twice_by_what_generators_make_of_tags_and_components() -> None:
    tags = [operation["tags"] for operation in OPERATIONS]
    assert [each for each in tags if len(each) != 1] == [], (
        "a class for each tag, and in each the types of an operation"
    )
    assert {tag for each in tags for tag in each} == {tag["name"] for tag in CONTRACT["tags"]}
    components = CONTRACT["components"]
    assert components["parameters"].keys() & components["schemas"].keys() == set()


@pytest.mark.requirement("contract.bounds")
def test_no_alternative_is_null_alone_and_no_list_of_values_has_a_length() -> None:
    text = json.dumps(whole(CONTRACT["components"]["schemas"]))
    assert '"enum": [null]' not in text
    nodes: list[Any] = [CONTRACT]
    while nodes:
        node = nodes.pop()
        nodes.extend(node.values() if isinstance(node, dict) else node if isinstance(node, list) else [])
        assert not (isinstance(node, dict) and isinstance(node.get("enum"), list) and "maxLength" in node), node
