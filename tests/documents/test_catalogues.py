"""Whatever the service says to a person stands in the catalogue of every language, with the same places in it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.connector import SourceError
from handlers.languages import ENGLISH, LANGUAGES, catalogue

ROOT = Path(__file__).parents[2]
ROOMS = ("connectors", "handlers/operations", "handlers/web", "handlers/work", "storage", "analytics")
SAYING = {  # what makes a sentence of its first argument
    *("Message", "message", "sentence", "_malformed", "Undecided", "Unreadable", "InvalidRecord", "InvalidRule"),
    *("Refusal", "BadRequest", "NotFound", "Conflicting", "Gone", "TooManyRequests", "Unavailable"),
    *("MalformedFile", "LimitExceeded", "UnsupportedFile", "ProviderUnavailable", "Misconfigured", "SourceError"),
}
TABLES = {  # of sentences, by module
    "handlers.integrity_sentences": ("MISSING", "TAKEN_BACK", "PERHAPS_SAME", "SENTENCES"),
    "handlers.operations.rules_in_words": ("TYPE", "CATEGORY", "MERCHANT", "TRANSFER", "OWN_RULE", "CORRECTED_BY"),
    "handlers.notice_sentences": ("TITLES", "TEXTS"),
    "handlers.work.sync.outcomes": ("NOT_SYNCABLE",),
    "connectors.bank_csv.layouts": ("_SIGNS", "_CURRENCIES", "UNSIGNED", "NO_TABLE"),
}
NOT_FOR_PERSONS = ("connectors/reference", "handlers/web/app.py", "handlers/web/sockets")  # what operators read
IN_ENGLISH = ("Unauthorized", "Internal error", "Rate limit exceeded", "Insufficient scope.", "Active subscription")
"""Sentences that the interface fixes: they are the same in every language, and so are those that begin like them."""

WITH_DEFAULTS = ("connectors.connector", "connectors.sources", "connectors.outgoing_http")  # their errors

PLACE, FORMS = re.compile(r"\{\w+\}"), re.compile(r"\{[^{}]+\|[^{}]+\}")
PARAMETER = re.compile("[a-z][a-zA-Z]*: ")  # what a refusal of one begins with
NAMED = ("page", "place", "account", "category")  # contexts of texts with a name, which English has too
each_language = pytest.mark.parametrize("language", sorted(set(LANGUAGES) - {ENGLISH}))
pytestmark = pytest.mark.requirement("live.german")


def said() -> Iterator[tuple[str, str]]:
    """Every template of the product that is said to a person, with its module."""
    for path in (each for room in ROOMS for each in sorted((ROOT / room).rglob("*.py"))):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(NOT_FOR_PERSONS):
            continue
        tree = ast.parse(path.read_text("utf-8"))
        texts = dict(assigned(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node.args and called(node) in SAYING:
                given = node.args[0]
                yield from strings(texts.get(given.id) if isinstance(given, ast.Name) else given, name)
    for name, tables in TABLES.items():
        tree = ast.parse((ROOT / f"{name.replace('.', '/')}.py").read_text("utf-8"))
        yield from (each for table, value in assigned(tree) if table in tables for each in strings(value, name))
    defaults = [kind for kind in descendants(SourceError) if kind.__module__.startswith(WITH_DEFAULTS)]
    yield from ((kind.__doc__ or "", kind.__module__) for kind in defaults)


def assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr | None]]:
    """The names of a module and what is assigned to them."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((each.id, node.value) for each in targets if isinstance(each, ast.Name))


def called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def strings(value: ast.expr | None, name: str) -> Iterator[tuple[str, str]]:
    """The texts that an expression may be: itself, or the values of a table."""
    values: list[ast.expr | None] = list(value.values) if isinstance(value, ast.Dict) else [value]
    for each in values:
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value:
            yield each.value, name


def descendants(kind: type[Exception]) -> Iterator[type[Exception]]:
    for each in kind.__subclasses__():
        yield each
        yield from descendants(each)


def known_as(template: str) -> str:
    return (template[:1].upper() + template[1:]).removesuffix(".")


@each_language
def test_every_sentence_is_known(language: str) -> None:
    known = catalogue(language).texts
    unknown = {
        f"{name}: {text}"
        for text, name in said()
        if ("", known_as(text)) not in known and not text.startswith(IN_ENGLISH)
    }
    assert sorted(unknown) == []


@each_language
def test_a_translation_has_the_places_and_the_forms_of_its_text(language: str) -> None:
    own, english = catalogue(language).texts, catalogue(ENGLISH).texts
    for id_, text in own.items():
        places, has_forms = shape(text)
        wanted, needs_forms = shape(english.get(id_, id_[1]))
        assert places == wanted or not id_[1], id_
        assert has_forms >= needs_forms, id_
        assert not has_forms or needs_forms or "{n}" in places, id_
        assert id_[0] or not id_[1].endswith("."), "is looked for without its full stop"


def shape(text: str) -> tuple[set[str], bool]:
    """The places of a text, and whether it has a form for one and for many."""
    return set(PLACE.findall(text)), FORMS.search(text) is not None


@each_language
def test_the_name_of_a_parameter_is_spelt_as_in_a_request(language: str) -> None:
    asked = {text.partition(":")[0] for text, _ in said() if PARAMETER.match(text)}
    assert "include" in asked
    wrong = {
        text
        for text in catalogue(language).texts.values()
        for name in asked
        if text.startswith(f"{name[:1].upper()}{name[1:]}:")
    }
    assert sorted(wrong) == []


def test_all_languages_know_the_same() -> None:
    first, *others = (catalogue(language).texts.keys() for language in sorted(set(LANGUAGES) - {ENGLISH}))
    for known in others:
        assert known ^ first == set()
    assert catalogue(ENGLISH).texts.keys() ^ {(context, id_) for context, id_ in first if context in NAMED} <= {
        ("", "")
    }
