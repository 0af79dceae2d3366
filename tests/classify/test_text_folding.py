"""Decision 9: ü = u = ue, ß = ss, accents dropped, whatever the case, in plain Python and in Polars alike."""

import unicodedata

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.letters import PLAIN_LENGTH_MAX, fold, plain
from analytics.search_text import fold_column, in_ascii, plain_text, searchable_text
from tests.conftest import examples

LETTERS = st.text(
    st.characters(min_codepoint=0x20, max_codepoint=0x24F) | st.sampled_from("ΣσςİıẞﬁßüÜ™́aoue"), max_size=20
)


@pytest.mark.requirement("decision 9")
@pytest.mark.parametrize("spelling", ["Müller", "Mueller", "MUELLER", "muller", "Mu\u0308ller", "MÜLLER"])
def test_all_spellings_of_an_umlaut_are_one(spelling: str) -> None:
    assert fold(spelling) == "muller"


@pytest.mark.requirement("decision 9")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Straße", "strasse"),
        ("STRASSE", "strasse"),
        ("STRAẞE", "strasse"),
        ("Café Crème", "cafe creme"),
        ("Łódź Ærø Đorđe", "lodz aro dorde"),
        ("100 % _'\"\\", "100 % _'\"\\"),
        ("", ""),
    ],
)
def test_sharp_s_and_accents_fold_and_signs_stay(text: str, expected: str) -> None:
    assert fold(text) == expected


@pytest.mark.requirement("decision 9")
@given(LETTERS)
@settings(max_examples=examples(300))
def test_the_column_and_the_plain_function_agree_and_folding_twice_changes_nothing(text: str) -> None:
    column = pl.DataFrame({"text": [text]}).select(folded=fold_column(pl.col("text")), plain=plain_text(pl.col("text")))
    assert column.row(0) == (fold(text), plain(text))
    assert fold(fold(text)) == fold(text)


@pytest.mark.requirement("decision 9")
@pytest.mark.parametrize("word", ["ela", "Manuela", "müller", "Mueller", "muller", "MULL"])
def test_a_word_is_found_in_its_plain_or_its_folded_spelling(word: str) -> None:
    [text] = pl.DataFrame({"name": ["Manuela Müller"]}).select(searchable_text(pl.col("name"))).to_series()
    assert fold(word) in text or plain(word) in text


@pytest.mark.requirement("decision 9")
def test_a_text_of_one_spelling_is_kept_once() -> None:
    texts = pl.DataFrame({"name": ["Lidl", "Meier"]}).select(searchable_text(pl.col("name"))).to_series().to_list()
    assert texts == ["lidl", "meier"]


@pytest.mark.requirement("decision 9")
def test_an_unknown_text_stays_unknown() -> None:
    nothing = pl.DataFrame({"text": [None]}, schema={"text": pl.String})
    assert nothing.select(fold_column(pl.col("text"))).item() is None


def test_a_letter_that_stands_for_a_sentence_makes_no_text_longer_than_any_person_writes() -> None:
    for text in ("\ufdfa" * 2000, "w" * (PLAIN_LENGTH_MAX + 1), "ß" * PLAIN_LENGTH_MAX):
        assert len(unicodedata.normalize("NFKD", plain(text))) <= 2 * PLAIN_LENGTH_MAX
        column = pl.DataFrame({"text": [text]}).select(plain_text(pl.col("text"))).item()
        assert column == plain(text)


def test_words_of_ascii_end_where_they_ended_among_all_letters() -> None:
    texts = pl.DataFrame({"text": ["gaa é", "égaa", "gaaé", "gaa–x", "gaa ص", "x", None]})
    found = texts.select(pl.col("text").str.contains(r"\bgaa\b"))
    assert texts.select(in_ascii(pl.col("text")).str.contains(r"(?-u)\bgaa\b")).equals(found)
    assert found["text"].to_list() == [True, False, False, True, True, False, None]
