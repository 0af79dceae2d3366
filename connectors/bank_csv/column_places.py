"""The places of the columns that a profile names in a table, and the repair of rows that do not fit."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from connectors.bank_csv.profile import comparable

_SHIFT_MAX = 3  # cells by which a row may differ from its header


def from_the_right(row: Sequence[str], *, width: int, split: int) -> list[str] | None:
    """The row with exactly `width` cells, so that its end is in place again: missing cells are added as empty ones
    before the amount, whose index is `split`; where there are too many, those before the amount are joined by commas.
    None where it differs by more than three cells, or `width` (0) or `split` (negative) is unknown.

    Seen at N26 (a category is left out) and Bank Pocztowy (commas without quotes).
    """
    missing = width - len(row)
    if not width or abs(missing) > _SHIFT_MAX or split < 0:
        return None
    split = min(split, len(row))
    if missing > 0:
        cut = max(split - missing, 0)
        return [*row[:cut], *[""] * missing, *row[cut:]]
    joined = ", ".join(cell for cell in row[split - 1 : split - missing] if cell) if split else ""
    return [*row[: max(split - 1, 0)], joined, *row[split - missing :]]


def place_of(text: str, names: Sequence[str]) -> int | None:
    """The index of the column that a profile calls `text`: the first of that name, None where there is none; "name#2"
    is the second column of that name unless one is called so. "@3" is the third column and "@-1" the last, whose index
    is negative; whether the table has so many is not checked."""
    if text in names:
        return names.index(text)
    if text.startswith("@"):
        number = int(text[1:])
        return number - 1 if number > 0 else number
    name, _, ordinal = text.partition("#")
    places = [index for index, other in enumerate(names) if other == name]
    wanted = int(ordinal) if ordinal.isdigit() else 1
    return places[wanted - 1] if wanted <= len(places) else None


def references(header: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each column as a profile calls it, and its name as written: "name#2" is the second one of that name."""
    seen = Counter[str]()
    for cell in header:
        name = comparable(cell)
        seen[name] += 1
        yield (name if seen[name] == 1 else f"{name}#{seen[name]}"), cell


def cells_of(places_of: Sequence[str], header: Sequence[str], data: Sequence[Sequence[str]]) -> list[str]:
    """The filled cells of these columns in some rows, as written."""
    names = [comparable(cell) for cell in header]
    places = [place for each in places_of if (place := place_of(each, names)) is not None]
    return [row[place] for place in places for row in data if place < len(row) and row[place].strip()]


def conditions(declared: Mapping[str, tuple[str, ...]], names: Sequence[str]) -> list[tuple[int, frozenset[str]]]:
    """The conditions of a profile on columns that this table has: each column's index, and the words one of which a
    cell has to be to meet the condition."""
    places = ((place_of(name, names), frozenset(words)) for name, words in declared.items())
    return [(place, words) for place, words in places if place is not None]


def label_pattern(labels: Mapping[str, str]) -> re.Pattern[str]:
    """A pattern for `split_by_label` that finds a profile's labels at the beginnings of words, followed by a space, or
    by a colon and a space; of labels that begin alike, the longest."""
    return re.compile(
        r"(?:^|(?<=[\s,;]))(" + "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True)) + r"):?\s"
    )


def split_by_label(text: str, pattern: re.Pattern[str]) -> dict[str, str]:
    """The text after each label, by label; the text before the first label is under "". Of a label that comes twice,
    the first text counts."""
    pieces = pattern.split(f"{text} ")
    parts = {"": pieces[0].strip()}
    for label, value in zip(pieces[1::2], pieces[2::2], strict=True):
        parts.setdefault(label, value.strip(" ,;"))
    return parts
