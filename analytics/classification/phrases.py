"""Known phrases in a text, found by whole words, or as a part of a word where the phrase allows that."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

from analytics.letters import fold

T = TypeVar("T")
_WORD = re.compile(r"[^\W_]+")
_APOSTROPHE = re.compile("['’`´]")
REMEMBERED_WORDS_MAX = 200_000  # words whose parts have been looked up; further ones are looked up again each time


class Found(NamedTuple, Generic[T]):
    """A phrase found in a text, beginning at word `position`; `length` is its number of letters."""

    phrase: str
    meaning: T
    position: int
    length: int


class Phrases(Generic[T]):
    """An index of phrases: "miete" is that word, "*miete" its end, "miete*" its beginning, "*miete*" any part of it.

    The cost grows with the words of the text, not with the phrases. Phrases of several words are matched as they are.
    The index is built on first use: thousands of phrases take longer than most commands, which need none.
    """

    def __init__(self, entries: Callable[[], Iterable[tuple[str, T]]]) -> None:
        self._entries = entries
        self._dull: set[str] = set()  # words that neither begin nor contain a phrase: most words
        self._remembered: dict[str, tuple[str, T, int] | None] = {}

    @cached_property
    def _index(self) -> "_Index[T]":
        return _Index(self._entries())

    def best(self, words: Sequence[str]) -> Found[T] | None:
        """The longest phrase in the text, the earliest of equals; None for none."""
        best: Found[T] | None = None
        for hit in self.all(words):
            if best is None or hit.length > best.length:
                best = hit
        return best

    def all(self, words: Sequence[str]) -> list[Found[T]]:
        """Every phrase in the text: for each word, at most one that begins there and one that is a part of the word."""
        hits: list[Found[T]] = []
        dull, by_first_word = self._dull, self._index.by_first_word
        for position, word in [each for each in enumerate(words) if each[1] not in dull]:
            candidates, part = by_first_word.get(word), None
            if word.isalpha():  # numbers and references contain no compound, and are too many to be cached
                part = self._part(word)
                if candidates is None and part is None and len(dull) < REMEMBERED_WORDS_MAX:
                    dull.add(word)
            for stem, phrase, meaning in candidates or ():
                size = len(stem)
                if size == 1 or tuple(words[position : position + size]) == stem:
                    hits.append(Found(phrase, meaning, position, sum(map(len, stem))))
                    break
            if part is not None:
                hits.append(Found(part[0], part[1], position, part[2]))
        return hits

    def _part(self, word: str) -> tuple[str, T, int] | None:
        try:
            return self._remembered[word]
        except KeyError:
            if len(self._remembered) >= REMEMBERED_WORDS_MAX:
                self._remembered.clear()
            return self._remembered.setdefault(word, self._look_up(word))

    def _look_up(self, word: str) -> tuple[str, T, int] | None:
        index = self._index
        for length in index.stem_lengths:
            if length <= len(word):
                entry = index.beginnings.get(word[:length]) or index.ends.get(word[-length:])
                if entry is not None:
                    return (*entry, length)
        for stem, phrase, meaning in index.parts:
            if stem in word:
                return phrase, meaning, len(stem)
        return None


class _Index(Generic[T]):
    """The phrases, indexed for look-up by first word, beginning, end and part of a word."""

    def __init__(self, entries: Iterable[tuple[str, T]]) -> None:
        self.by_first_word: dict[str, list[tuple[tuple[str, ...], str, T]]] = {}
        self.beginnings: dict[str, tuple[str, T]] = {}
        self.ends: dict[str, tuple[str, T]] = {}
        self.parts: list[tuple[str, str, T]] = []
        for phrase, meaning in entries:
            self._add(phrase, meaning)
        for candidates in self.by_first_word.values():
            candidates.sort(key=lambda candidate: -len(candidate[0]))
        self.stem_lengths = sorted({len(stem) for stem in (*self.beginnings, *self.ends)}, reverse=True)

    def _add(self, phrase: str, meaning: T) -> None:
        stem = words_of(phrase.replace("*", ""))
        if "*" not in phrase:
            self.by_first_word.setdefault(stem[0], []).append((stem, phrase, meaning))
            return
        assert len(stem) == 1, f"a star stands in single words only: {phrase}"
        if phrase.startswith("*") and phrase.endswith("*"):
            self.parts.append((stem[0], phrase, meaning))
        elif phrase.startswith("*"):
            self.ends.setdefault(stem[0], (phrase, meaning))
        else:
            self.beginnings.setdefault(stem[0], (phrase, meaning))


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text, folded (`analytics.letters.fold`): letters and digits form words, everything else separates
    them, except an apostrophe ("McDonald's" is one word)."""
    return () if not text else tuple(_WORD.findall(_APOSTROPHE.sub("", fold(text))))
