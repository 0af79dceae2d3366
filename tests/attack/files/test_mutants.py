"""Mutated statements through the parsing process: records, or a refusal in one sentence, in bounded time.

The same in large: `python -m tests.attack.files --count 100000`.
"""

from io import BytesIO

import pytest

from connectors.statements import read_records
from tests.attack.files.mutants import mutant
from tests.attack.files.reading import fault
from tests.attack.files.seeds import seeds

pytestmark = pytest.mark.no_cover  # random examples, see tests/conftest.py

COUNT = 120


@pytest.mark.requirement("readers.apart")
def test_every_mutated_statement_is_read_or_refused_in_one_sentence() -> None:
    known = seeds()
    found = {number: fault(read_records, mutant(number, known)[1]) for number in range(COUNT)}
    assert {number: said for number, said in found.items() if said} == {}


@pytest.mark.requirement("readers.apart")
def test_a_mutant_is_known_by_its_number() -> None:
    known = seeds()
    assert [mutant(number, known) for number in range(50)] == [mutant(number, known) for number in range(50)]
    assert len({mutant(number, known)[1] for number in range(50)}) > 40


@pytest.mark.requirement("readers.apart")
@pytest.mark.parametrize("name", sorted(seeds()))
def test_the_statements_that_are_mutated_are_read(name: str) -> None:
    records = list(read_records(BytesIO(seeds()[name])))
    assert len(records) >= 3, "an account, a booking, a statement"
