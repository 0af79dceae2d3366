"""What a newer contract took from an older one: the additions that decision 36 allows are not among it."""

from collections.abc import Iterator, Mapping
from typing import Any

Node = Mapping[str, Any]


def removals(before: Node, after: Node) -> list[str]:
    """Operations, answers, fields, promised keys and accepted values of `before` that `after` lacks or narrows, and
    what it newly asks of requests, each as one line."""
    return [
        line
        for path, operations in before["paths"].items()
        for method, old in operations.items()
        for line in _of_operation(f"{method} {path}", old, after["paths"].get(path, {}).get(method), before, after)
    ]


def deprecated_without_dates(contract: Node) -> list[str]:
    """Operations that will go and do not say since when and until when, in the headers of their answers."""
    return [
        f"{method} {path}"
        for path, operations in contract["paths"].items()
        for method, operation in operations.items()
        if operation.get("deprecated")
        and not all(
            {"Deprecation", "Sunset"} <= answer.get("headers", {}).keys()
            for status, answer in operation["responses"].items()
            if status.startswith("2")
        )
    ]


def _of_operation(name: str, old: Node, new: Node | None, before: Node, after: Node) -> Iterator[str]:
    if new is None:
        yield f"{name}: gone"
        return
    asked = {key: _parameters(operation, of) for key, operation, of in (("old", old, before), ("new", new, after))}
    for key, parameter in asked["old"].items():
        if key not in asked["new"]:
            yield f"{name}: parameter {key} gone"
            continue
        yield from _narrowed(
            f"{name}: parameter {key}", _at(parameter["schema"], before), _at(asked["new"][key]["schema"], after)
        )
    for key, parameter in asked["new"].items():
        if parameter.get("required") and not asked["old"].get(key, {}).get("required"):
            yield f"{name}: parameter {key} newly required"
    for status, answer in old["responses"].items():
        if status not in new["responses"]:
            yield f"{name}: answer {status} gone"
            continue
        old_content = _at(answer, before).get("content", {})
        new_content = _at(new["responses"][status], after).get("content", {})
        for media_type, said in old_content.items():
            if media_type not in new_content:
                yield f"{name}: {status} as {media_type} gone"
                continue
            where = f"{name}: {status}"
            yield from _of_answer(where, said["schema"], new_content[media_type]["schema"], before, after)


def _of_answer(where: str, old: Node, new: Node, before: Node, after: Node) -> Iterator[str]:
    """Fields that went, or that need not be there any more."""
    old_fields, old_required = _fields(old, before)
    new_fields, new_required = _fields(new, after)
    for field, schema in old_fields.items():
        if field not in new_fields:
            yield f"{where}: field {field} gone"
            continue
        if field in old_required - new_required:
            yield f"{where}: field {field} no longer promised"
        yield from _of_answer(f"{where}.{field}", schema, new_fields[field], before, after)


def _fields(schema: Node, contract: Node) -> tuple[dict[str, Node], set[str]]:
    """The fields of an object or of the objects of a list, those of all its parts together."""
    whole = _at(schema, contract)
    if "items" in whole:
        return _fields(whole["items"], contract)
    fields: dict[str, Node] = dict(whole.get("properties", {}))
    required = set(whole.get("required", ()))
    for part in whole.get("allOf", ()):
        more, also = _fields(part, contract)
        fields |= more
        required |= also
    return fields, required


def _narrowed(where: str, old: Node, new: Node) -> Iterator[str]:
    gone = [value for value in old.get("enum", ()) if value not in new.get("enum", [value])]
    if gone:
        yield f"{where}: values gone: {gone}"
    for bound, direction in (("minimum", 1), ("maximum", -1), ("maxLength", -1)):
        was, now = old.get(bound), new.get(bound)
        if now is not None and (was is None or direction * now > direction * was):
            yield f"{where}: {bound} narrower"


def _parameters(operation: Node, contract: Node) -> dict[str, Node]:
    known = (_at(parameter, contract) for parameter in operation.get("parameters", ()))
    return {f"{parameter['in']} {parameter['name']}": parameter for parameter in known}


def _at(node: Node, contract: Node) -> Node:
    """What a reference leads to."""
    while "$ref" in node:
        found: Any = contract
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        node = found
    return node
