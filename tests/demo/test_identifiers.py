"""Check digits of invented numbers, against published examples."""

import pytest

from connectors.sources.demo.identifiers import creditor_id, digits, german_iban, iban


@pytest.mark.requirement("demo.identifiers")
def test_check_digits_are_those_of_published_examples() -> None:
    assert iban("DE", "370400440532013000") == "DE89370400440532013000"
    assert iban("GB", "WEST12345698765432") == "GB82WEST12345698765432"
    assert creditor_id("09999999999") == "DE98ZZZ09999999999"  # the German Bundesbank's example


@pytest.mark.requirement("demo.identifiers")
def test_the_same_words_make_the_same_number_and_other_words_another() -> None:
    assert digits(10, "a", "b") == digits(10, "a", "b") != digits(10, "a", "c")
    assert len(digits(10, "a")) == 10
    assert german_iban("99910000", "seed", "giro") == german_iban("99910000", "seed", "giro")
