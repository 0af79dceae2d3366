"""A regular expression matched step by step, as the `re` module does it, so that its work can be counted.

The engine of `re` tells nothing about its work, and time depends on the machine. This one walks the same parsed
pattern with the same backtracking; `test_patterns` holds that both find the same.
"""

import importlib
import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

# what `re` itself parses with; no stubs describe it
op: Any = importlib.import_module("re._constants")
parsed: Any = cache(importlib.import_module("re._parser").parse)

Then = Callable[[int], int | None]  # what follows: from a place in the text to the end of the match, None without one
Matcher = Callable[[int, Then], int | None]
_SINGLE = {op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN}


@cache
def _is_word(character: str, is_ascii: bool) -> bool:
    return re.fullmatch(r"\w", character, re.ASCII if is_ascii else 0) is not None


class Steps:
    """One pattern and the text that it reads; `count` is how many places of the pattern were tried against places of
    the text."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        self.text = ""
        self.count = 0
        self._is_bytes = isinstance(pattern.pattern, bytes)
        self._flags = pattern.flags
        self._all = self._sequence(list(parsed(pattern.pattern, pattern.flags)))

    def of(self, text: str) -> "Steps":
        """Itself, at the beginning of this text."""
        self.text, self.count = text, 0
        return self

    def match(self, start: int = 0, *, is_full: bool = False) -> int | None:
        """Where a match that begins at `start` ends."""
        return self._all(start, lambda end: None if is_full and end != len(self.text) else end)

    def search(self, start: int = 0) -> tuple[int, int] | None:
        """The first match from `start` on."""
        for place in range(start, len(self.text) + 1):
            if (end := self.match(place)) is not None:
                return place, end
        return None

    def search_all(self) -> None:
        """One match after the other, as `sub` and `split` look for them."""
        place = 0
        while place <= len(self.text) and (found := self.search(place)):
            place = max(found[1], found[0] + 1)

    def _sequence(self, items: list[Any]) -> Matcher:
        matchers = [self._item(*item) for item in items]
        if len(matchers) == 1:
            return matchers[0]

        def run(place: int, then: Then, index: int = 0) -> int | None:
            if index == len(matchers):
                return then(place)
            return matchers[index](place, lambda end: run(end, then, index + 1))

        return run

    def _item(self, code: Any, argument: Any) -> Matcher:
        if code in _SINGLE:
            return self._single(code, argument)
        match code:
            case op.SUBPATTERN:
                return self._sequence(list(argument[3]))
            case op.BRANCH:
                return self._branch([self._sequence(list(branch)) for branch in argument[1]])
            case op.MAX_REPEAT | op.MIN_REPEAT | op.POSSESSIVE_REPEAT:
                return self._repeat(code, *argument)
            case op.ATOMIC_GROUP:
                return self._atomic(self._sequence(list(argument)))
            case op.ASSERT | op.ASSERT_NOT:
                return self._look(code is op.ASSERT, argument[0], argument[1])
            case op.AT:
                return self._at(argument)
            case op.GROUPREF:
                return self._again
        raise NotImplementedError(f"{code}: teach this engine what it means")

    def _single(self, code: Any, argument: Any) -> Matcher:
        fits = self._fits(code, argument)

        def run(place: int, then: Then) -> int | None:
            return then(place + 1) if fits(place) else None

        return run

    def _again(self, place: int, then: Then) -> int | None:
        """The character before this one once more: the only group that our patterns refer to is a single character,
        with nothing between."""
        self.count += 1
        is_same = 0 < place < len(self.text) and self.text[place] == self.text[place - 1]
        return then(place + 1) if is_same else None

    def _fits(self, code: Any, argument: Any) -> Callable[[int], bool]:
        """Says whether the character at a place is one that the item allows, which is worked out once per character."""
        fitting: dict[str, bool] = {}

        def fits(place: int) -> bool:
            self.count += 1
            if place >= len(self.text):
                return False
            character = self.text[place]
            is_fitting = fitting.get(character)
            if is_fitting is None:
                is_fitting = fitting[character] = self._admits(code, argument, character)
            return is_fitting

        return fits

    def _admits(self, code: Any, argument: Any, character: str) -> bool:
        if code is op.ANY:
            return bool(self._flags & re.DOTALL) or character != "\n"
        if not self._flags & re.IGNORECASE:
            return self._allowed(code, argument, character)
        return any(self._allowed(code, argument, other) for other in {character.lower(), character.upper()})

    def _allowed(self, code: Any, argument: Any, character: str) -> bool:
        number = ord(character)
        match code:
            case op.LITERAL:
                return bool(number == argument)
            case op.NOT_LITERAL:
                return bool(number != argument)
            case op.RANGE:
                return bool(argument[0] <= number <= argument[1])
            case op.CATEGORY:
                return self._in_category(argument, character)
        is_negated = argument[0][0] is op.NEGATE
        found = any(self._allowed(kind, value, character) for kind, value in argument[is_negated:])
        return found != is_negated

    def _in_category(self, category: Any, character: str) -> bool:
        is_ascii = self._is_bytes or bool(self._flags & re.ASCII)
        name = {
            op.CATEGORY_DIGIT: r"\d", op.CATEGORY_NOT_DIGIT: r"\D", op.CATEGORY_SPACE: r"\s",
            op.CATEGORY_NOT_SPACE: r"\S", op.CATEGORY_WORD: r"\w", op.CATEGORY_NOT_WORD: r"\W",
        }[category]  # fmt: skip
        return re.fullmatch(name, character, re.ASCII if is_ascii else 0) is not None

    def _branch(self, branches: Iterable[Matcher]) -> Matcher:
        def run(place: int, then: Then) -> int | None:
            for branch in branches:
                self.count += 1
                if (end := branch(place, then)) is not None:
                    return end
            return None

        return run

    def _repeat(self, code: Any, least: int, most: int, items: Any) -> Matcher:
        inner = list(items)
        if code is not op.MIN_REPEAT and len(inner) == 1 and inner[0][0] in _SINGLE:
            return self._run_of_one(*inner[0], least=least, most=most, is_kept=code is op.POSSESSIVE_REPEAT)
        body = self._sequence(inner)
        is_lazy = code is op.MIN_REPEAT

        def run(place: int, then: Then, done: int = 0) -> int | None:
            self.count += 1

            def again(end: int) -> int | None:
                return run(end, then, done + 1) if end > place or done < least else None

            if done < least:
                return body(place, again)
            if is_lazy and (end := then(place)) is not None:
                return end
            if done < most and (end := body(place, again)) is not None:
                return end
            return None if is_lazy else then(place)

        return self._atomic(run) if code is op.POSSESSIVE_REPEAT else run

    def _run_of_one(self, code: Any, argument: Any, *, least: int, most: int, is_kept: bool) -> Matcher:
        fits = self._fits(code, argument)

        def run(place: int, then: Then) -> int | None:
            count = 0
            while count < most and fits(place + count):
                count += 1
            while count >= least:
                self.count += 1
                if (end := then(place + count)) is not None:
                    return end
                if is_kept:
                    return None
                count -= 1
            return None

        return run

    def _atomic(self, body: Matcher) -> Matcher:
        def run(place: int, then: Then) -> int | None:
            end = body(place, lambda reached: reached)
            return None if end is None else then(end)

        return run

    def _look(self, is_wanted: bool, direction: int, items: Any) -> Matcher:
        body = self._sequence(list(items))
        width = items.getwidth()[0] if direction < 0 else 0

        def run(place: int, then: Then) -> int | None:
            self.count += 1
            is_there = place >= width and body(place - width, lambda end: end) is not None
            return then(place) if is_there == is_wanted else None

        return run

    def _at(self, where: Any) -> Matcher:
        is_ascii = self._is_bytes or bool(self._flags & re.ASCII)
        is_line = bool(self._flags & re.MULTILINE)

        def is_word(place: int) -> bool:
            return 0 <= place < len(self.text) and _is_word(self.text[place], is_ascii)

        def holds(place: int) -> bool:
            self.count += 1
            match where:
                case op.AT_BEGINNING:
                    return place == 0 or (is_line and self.text[place - 1] == "\n")
                case op.AT_END:
                    left = len(self.text) - place
                    return left == 0 or (self.text[place] == "\n" and (left == 1 or is_line))
                case op.AT_END_STRING:
                    return place == len(self.text)
                case op.AT_BOUNDARY:
                    return is_word(place - 1) != is_word(place)
            raise NotImplementedError(f"{where}: teach this engine what it means")

        return lambda place, then: then(place) if holds(place) else None
