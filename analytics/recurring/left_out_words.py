"""Words in bank texts, folded and in ASCII, that say that money was saved, settled, lent, withdrawn in cash or
returned."""

from importlib.resources import files


def _lines() -> list[tuple[str, str]]:
    text = files("analytics.recurring").joinpath("left_out_words.tsv").read_text("utf-8")
    return [(topic, pattern) for topic, _, pattern in (line.partition("\t") for line in text.splitlines()) if pattern]


PATTERNS = _lines()
"""Each topic with one of its patterns."""


def _pattern_of(*topics: str) -> str:
    """A pattern of everything about these topics; the texts are in ASCII, see `analytics.search_text.in_ascii`."""
    return "(?-u)" + "|".join(pattern for topic, pattern in PATTERNS if topic in topics)


LEFT_OUT = _pattern_of("saving", "settlement", "instalment", "cash", "fee")
DEPOT = _pattern_of("depot")
SHOP_DEPOT = _pattern_of("shop_depot")
RETURN = _pattern_of("return")
