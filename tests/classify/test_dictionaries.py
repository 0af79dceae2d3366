"""The tables of facts: enough of them, well formed, and no entry that can never answer."""

import re
from importlib.resources import files

import polars as pl
import pytest

from analytics.classification.classify import NUMBER_LENGTH_MIN
from analytics.classification.facts import CATEGORIES, TYPES, category_of, spread, table, words
from analytics.classification.intermediaries import (
    STARRED_LENGTH_MAX,
    are_intermediaries,
    intermediary_of,
    is_intermediary,
)
from analytics.classification.persons import FIRST_NAMES
from analytics.classification.phrases import Phrases, words_of


@pytest.mark.requirement("issue 4 dictionary")
def test_the_dictionary_knows_400_brands_and_150_keywords_of_the_thirteen_categories() -> None:
    brands = table("brands.tsv")
    keywords = [phrase for _, _, phrases in table("keywords.tsv") for phrase in phrases.split(", ")]
    assert len({name for _, name, *_ in brands}) >= 400
    assert len(set(keywords)) >= 150
    assert {category_of(code) for code, *_ in brands} == set(CATEGORIES) - {"SALARY"}  # nobody's brand is a salary
    assert {category for category, _, _ in table("keywords.tsv")} <= set(CATEGORIES)
    assert {scope for _, scope, _ in table("keywords.tsv")} == {"name", "company", "text", "card", "credit"}


@pytest.mark.requirement("issue 4 dictionary")
def test_no_spelling_belongs_to_two_brands() -> None:
    owners: dict[tuple[str, ...], set[tuple[str, str]]] = {}
    for category, name, *aliases in table("brands.tsv"):
        for alias in aliases[0].split(", ") if aliases else [name]:
            owners.setdefault(words_of(alias.removeprefix("?")), set()).add((category, name))
    assert {alias: names for alias, names in owners.items() if len(names) > 1} == {}
    assert () not in owners


@pytest.mark.requirement("issue 4 dictionary")
def test_every_code_table_says_known_types_and_categories() -> None:
    for name in ("iso_types.tsv", "gvc_types.tsv", "swift_types.tsv", "purpose_types.tsv"):
        assert {row[-1] for row in table(name)} <= {*TYPES, "?"}
        assert {row[1] for row in table(name)} <= {"+", "-", "*"}
    assert {row[-1] for name in ("mcc_categories.tsv", "purpose_categories.tsv") for row in table(name)} <= {
        *CATEGORIES
    }
    assert list(spread("304-306")) == [304, 305, 306]
    assert list(spread("083")) == [83]
    assert "lukas" in words("first_names.txt")


@pytest.mark.requirement("issue 4 dictionary")
def test_no_table_knows_a_number_that_is_long_enough_to_be_a_reference() -> None:
    names = [file.name for file in files("analytics.classification").joinpath("data").iterdir()]
    told = [text for name in names for columns in table(name) for text in columns]
    assert [text for text in told if re.search(rf"[0-9]{{{NUMBER_LENGTH_MIN}}}", text)] == []


@pytest.mark.requirement("issue 4 intermediaries")
def test_an_intermediary_is_known_by_its_first_words_and_short_ones_need_their_star() -> None:
    assert is_intermediary("PayPal Europe S.a.r.l. et Cie S.C.A")
    assert is_intermediary("SP *SHOP")
    assert not is_intermediary("SP Markt GmbH")
    assert not is_intermediary("REWE")
    assert not is_intermediary(None)


@pytest.mark.requirement("issue 4 dictionary")
def test_phrases_match_whole_words_and_parts_only_where_a_star_says_so() -> None:
    phrases = Phrases(
        lambda: [("miete", 1), ("*apotheke", 2), ("kino*", 3), ("*versicher*", 4), ("haus und grund", 5), ("haus", 6)]
    )

    def found(text: str) -> int | None:
        best = phrases.best(words_of(text))
        return best.meaning if best else None

    assert [found(text) for text in ("Miete", "Vermieter", "Rosen-Apotheke", "LOEWENAPOTHEKE", "Apothekerbank")] == [
        1,
        None,
        2,
        2,
        None,
    ]
    assert [found(text) for text in ("Kinokarte", "Pippikino", "Kfz-Versicherung", "Haus und Grund e.V.", "Haus")] == [
        3,
        None,
        4,
        5,
        6,
    ]
    assert found("") is None


@pytest.mark.requirement("issue 4 dictionary")
def test_words_beyond_those_remembered_are_looked_up_again_and_found_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("analytics.classification.phrases.REMEMBERED_WORDS_MAX", 2)
    known = Phrases(lambda: [("*apotheke", "health")])
    text = words_of("Rosenapotheke Loewenapotheke Adlerapotheke Markt Platz Hof Rosenapotheke Markt")
    for _ in range(2):
        assert [hit.position for hit in known.all(text)] == [0, 1, 2, 6]
    assert len(known._remembered) <= 2
    assert len(known._dull) <= 2


@pytest.mark.requirement("issue 4 dictionary")
def test_a_first_name_alone_is_never_a_brand_without_doubt() -> None:
    certain = {
        words_of(alias) for *_, aliases in table("brands.tsv") for alias in aliases.split(", ") if alias[0] != "?"
    }
    assert {alias for alias in certain if len(alias) == 1 and alias[0] in FIRST_NAMES} == set()
    assert {alias for alias in certain if len("".join(alias)) <= 2} <= {("o2",), ("q8",)}


@pytest.mark.requirement("issue 4 intermediaries")
def test_a_column_of_names_is_told_as_each_name_is() -> None:
    carrying = ["PayPal Europe", "PAY PAL", "SP *SHOP", "XYZ *SHOP", "Amazon_Pay", "Bluecode"]
    names = [*carrying, "SP Markt", "Paypalast", ""]
    told = pl.DataFrame({"name": [*names, None]}).select(are_intermediaries(pl.col("name"))).to_series().to_list()
    assert told == [*(name in carrying for name in names), None]
    assert told[:-1] == [is_intermediary(name) for name in names]


@pytest.mark.requirement("issue 4 intermediaries")
def test_every_spelling_of_the_table_is_an_intermediary_with_its_star_and_without_it_unless_it_is_short() -> None:
    for alias in (alias for _, _, aliases in table("intermediaries.tsv") for alias in aliases.split(", ")):
        assert is_intermediary(f"{alias.upper()} *Wollkiste")
        assert is_intermediary(alias) == (len(alias.replace(" ", "")) > STARRED_LENGTH_MAX)
        assert is_intermediary(alias) == (intermediary_of(words_of(alias), has_star=False) is not None)
