"""Within /v1 the contract only grows: nothing of the released one is gone, narrower or newly demanded (decision 36)."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from handlers.web.app import CONTRACT_FILE
from tests.contract.additions import deprecated_without_dates, removals

Contract = dict[str, Any]
RELEASED: Contract = json.loads(Path(__file__).with_name("released_contract.json").read_text(encoding="utf-8"))
SERVED: Contract = json.loads(CONTRACT_FILE.read_bytes())


@pytest.mark.requirement("decision 36")
def test_the_served_contract_took_nothing_from_the_released_one() -> None:
    assert removals(RELEASED, SERVED) == []


def without_operation(contract: Contract) -> None:
    del contract["paths"]["/sync"]["post"]


def without_parameter(contract: Contract) -> None:
    contract["paths"]["/cashflow"]["get"]["parameters"].pop(1)


def with_required_parameter(contract: Contract) -> None:
    contract["paths"]["/cashflow"]["get"]["parameters"][1]["required"] = True


def with_fewer_categories(contract: Contract) -> None:
    contract["components"]["schemas"]["Category"]["enum"].remove("RENT")


def with_smaller_pages(contract: Contract) -> None:
    contract["paths"]["/transactions"]["get"]["parameters"][6]["schema"]["maximum"] = 99


def with_fewer_months(contract: Contract) -> None:
    contract["paths"]["/cashflow"]["get"]["parameters"][1]["schema"]["minimum"] = 2


def with_a_last_month(contract: Contract) -> None:
    contract["paths"]["/cashflow"]["get"]["parameters"][1]["schema"]["maximum"] = 120


def without_status(contract: Contract) -> None:
    del contract["paths"]["/transactions/{id}"]["get"]["responses"]["404"]


def without_json(contract: Contract) -> None:
    contract["paths"]["/snapshot"]["get"]["responses"]["200"]["content"] = {"text/plain": {}}


def without_field(contract: Contract) -> None:
    del contract["components"]["schemas"]["Transaction"]["properties"]["purpose"]


def with_optional_field(contract: Contract) -> None:
    contract["components"]["schemas"]["MonthlyCashflow"]["required"].remove("net")


@pytest.mark.requirement("decision 36")
@pytest.mark.parametrize(
    ("change", "found"),
    [
        (without_operation, "post /sync: gone"),
        (without_parameter, "get /cashflow: parameter query months gone"),
        (with_required_parameter, "get /cashflow: parameter query months newly required"),
        (with_fewer_categories, "get /transactions: parameter query category: values gone: ['RENT']"),
        (with_smaller_pages, "get /transactions: parameter query perPage: maximum narrower"),
        (with_fewer_months, "get /cashflow: parameter query months: minimum narrower"),
        (with_a_last_month, "get /cashflow: parameter query months: maximum narrower"),
        (without_status, "get /transactions/{id}: answer 404 gone"),
        (without_json, "get /snapshot: 200 as application/json gone"),
        (without_field, "get /transactions: 200.transactions: field purpose gone"),
        (with_optional_field, "get /cashflow: 200.cashflow: field net no longer promised"),
    ],
)
def test_every_kind_of_removal_is_found(change: Callable[[Contract], None], found: str) -> None:
    changed = deepcopy(SERVED)
    change(changed)
    assert found in removals(RELEASED, changed)


@pytest.mark.requirement("decision 36")
def test_an_operation_that_will_go_says_since_when_and_until_when() -> None:
    assert deprecated_without_dates(SERVED) == []
    ending = deepcopy(SERVED)
    snapshot = ending["paths"]["/snapshot"]["get"]
    snapshot["deprecated"] = True
    assert deprecated_without_dates(ending) == ["get /snapshot"]
    snapshot["responses"]["200"]["headers"] |= {"Deprecation": {}, "Sunset": {}}
    assert deprecated_without_dates(ending) == []
