"""Some months of accounts whose banks behave as banks do (tests/soak/random_histories.py has hundreds of years)."""

import pytest

from tests.conftest import seeds
from tests.soak.random_histories import lived

pytestmark = pytest.mark.requirement("import.complete-windows")


SOURCES = ("enable banking", "fints", "finapi", "simplefin")


@pytest.mark.parametrize("seed", seeds(4), ids=lambda seed: SOURCES[seed % 4])
def test_whatever_a_bank_does_to_ids_days_and_words_one_account_is_one_ledger(seed: int) -> None:
    (history,) = lived([seed], months=3)
    assert history.problems == []
