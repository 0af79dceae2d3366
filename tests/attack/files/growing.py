"""Texts that make a regular expression work: matches of it, with a part repeated and an end that fits nowhere."""

import importlib
import random
import re
from collections.abc import Iterator
from typing import Any

# what `re` itself parses with; no stubs describe it
op: Any = importlib.import_module("re._constants")
parser: Any = importlib.import_module("re._parser")

ENDS = ("", "!", "\x01", "\n", "a")
CLASSES = {
    op.CATEGORY_DIGIT: "17", op.CATEGORY_SPACE: " \t", op.CATEGORY_WORD: "a1_", op.CATEGORY_NOT_DIGIT: "a ",
    op.CATEGORY_NOT_SPACE: "a1", op.CATEGORY_NOT_WORD: " -",
}  # fmt: skip
REPEATS_MAX = 3


def attacks(pattern: re.Pattern[Any], chance: random.Random, count: int) -> Iterator[tuple[str, str, str]]:
    """Head, pump and end of `count` texts head + n * pump + end."""
    tree = parser.parse(pattern.pattern, pattern.flags)
    alphabet = sorted({character for code, argument in tree for character in _alphabet(code, argument)} | set(" a1"))
    for _ in range(count):
        text = "".join(_sample(code, argument, chance) for code, argument in tree)
        place = chance.randint(0, len(text))
        width = chance.randint(1, 3)
        pump = text[max(0, place - width) : place] if chance.random() < 0.5 else ""
        yield text[:place], pump or "".join(chance.choices(alphabet, k=chance.randint(1, 2))), chance.choice(ENDS)


def _alphabet(code: Any, argument: Any) -> set[str]:
    """The characters that a pattern names."""
    match code:
        case op.LITERAL | op.NOT_LITERAL:
            return {chr(argument)}
        case op.RANGE:
            return {chr(argument[0]), chr(argument[1])}
        case op.CATEGORY:
            return set(CLASSES[argument])
        case op.IN:
            return {character for item in argument for character in _alphabet(*item)}
        case op.BRANCH:
            return {character for branch in argument[1] for item in branch for character in _alphabet(*item)}
        case op.SUBPATTERN:
            return {character for item in argument[3] for character in _alphabet(*item)}
        case op.MAX_REPEAT | op.MIN_REPEAT | op.POSSESSIVE_REPEAT:
            return {character for item in argument[2] for character in _alphabet(*item)}
        case op.ASSERT | op.ASSERT_NOT:
            return {character for item in argument[1] for character in _alphabet(*item)}
    return set()


def _sample(code: Any, argument: Any, chance: random.Random) -> str:
    """A text that the item is likely to match; what looks around adds nothing."""
    match code:
        case op.LITERAL:
            return chr(argument)
        case op.ANY | op.NOT_LITERAL:
            return chance.choice("a1 ")
        case op.IN:
            if argument[0][0] is op.NEGATE:
                return chance.choice("a1 -")
            found = sorted(_alphabet(code, argument))
            return chance.choice(found)
        case op.BRANCH:
            return "".join(_sample(kind, value, chance) for kind, value in chance.choice(argument[1]))
        case op.SUBPATTERN:
            return "".join(_sample(kind, value, chance) for kind, value in argument[3])
        case op.MAX_REPEAT | op.MIN_REPEAT | op.POSSESSIVE_REPEAT:
            least, most, items = argument
            times = chance.randint(least, max(least, min(int(most), REPEATS_MAX)))
            return "".join(_sample(kind, value, chance) for _ in range(times) for kind, value in items)
    return ""
