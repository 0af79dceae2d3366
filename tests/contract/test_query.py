"""Query parameters: what the contract allows arrives typed, everything else is one sentence with status 400."""

import re
from collections.abc import Callable
from datetime import date
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from handlers.names import python_name
from handlers.web.errors import BadRequest
from handlers.web.steps.parameters import DIGITS_MAX, FIELDS_MAX, Parameters, form_fields

Ask = Callable[[str], Any]


@pytest.fixture(scope="module")
def received(make_app: Callable[..., ASGIApp], connect: Callable[..., TestClient]) -> Callable[[str], dict[str, Any]]:
    """The arguments that GET /transactions hands to its function for a query."""
    seen: dict[str, Any] = {}

    async def list_transactions(_request: object, **arguments: Any) -> dict[str, Any]:
        seen.clear()
        seen.update(arguments)
        pagination = {"page": 1, "perPage": 50, "total": 0, "pageCount": 0}
        return {"transactions": [], "pagination": pagination}

    client = connect(make_app({"listTransactions": list_transactions}))

    def ask(query: str) -> dict[str, Any]:
        answer = client.get(f"/api/v1/transactions?{query}")
        assert answer.status_code == 200, answer.text
        return seen

    return ask


@pytest.fixture
def refused(client: TestClient) -> Callable[[str], str]:
    """The sentence that GET /transactions answers to a bad query."""

    def ask(query: str) -> str:
        answer = client.get(f"/api/v1/transactions?{query}")
        assert answer.status_code == 400, answer.text
        body: dict[str, str] = answer.json()
        assert body.keys() == {"error"}
        return body["error"]

    return ask


@pytest.mark.requirement("loop.arguments")
def test_all_parameters_arrive_in_snake_case_with_their_defaults(received: Ask) -> None:
    assert received("") == {
        "account_ids": None,
        "category": None,
        "date_from": None,
        "date_to": None,
        "search": None,
        "page": 1,
        "per_page": 50,
        "include": None,
        "detailed_category": None,
        "own_category": None,
        "tag": None,
    }


@pytest.mark.requirement("loop.arguments")
def test_values_arrive_with_their_types(received: Ask) -> None:
    query = "accountIds=a,b&category=RENT&dateFrom=2026-02-28&dateTo=2024-02-29&search=M%C3%BC+x&page=2&perPage=100"
    assert received(query) == {
        "account_ids": "a,b",
        "category": "RENT",
        "date_from": date(2026, 2, 28),
        "date_to": date(2024, 2, 29),
        "search": "Mü x",
        "page": 2,
        "per_page": 100,
        "include": None,
        "detailed_category": None,
        "own_category": None,
        "tag": None,
    }


@pytest.mark.requirement("decision.2")
def test_any_page_is_an_integer_however_large(received: Ask) -> None:
    assert received(f"page={10**30}")["page"] == 10**30
    assert received("page=" + "9" * DIGITS_MAX)["page"] == 10**DIGITS_MAX - 1


@pytest.mark.requirement("decision.8")
@pytest.mark.parametrize("query", ["limit=200", "page[]=7", "PAGE=7", "%70age%00=7", "limit=1&limit=2", "=", "&&&"])
def test_unknown_parameters_are_ignored(received: Ask, query: str) -> None:
    assert received(query)["page"] == 1


@pytest.mark.requirement("loop.empty-parameters")
def test_an_empty_list_of_accounts_or_search_text_is_no_error(received: Ask) -> None:
    assert received("accountIds=&search=")["account_ids"] == ""


@pytest.mark.requirement("loop.integers")
@pytest.mark.parametrize(
    "text", ["", "0", "-1", "+2", "%202", "2%20", "2%0A", "1_0", "01", "1.0", "1e3", "0x1", "%D9%A2", "%C2%B2", "NaN"]
)
def test_integers_are_ascii_digits_of_at_least_one(refused: Ask, text: str) -> None:
    assert refused(f"page={text}") == "page: must be an integer of at least 1"


@pytest.mark.requirement("loop.integers")
def test_an_integer_too_long_to_be_meant_is_refused(refused: Ask) -> None:
    assert refused("page=" + "9" * (DIGITS_MAX + 1)) == f"page: must have at most {DIGITS_MAX} digits"
    assert refused("page=" + "9" * 6000) == f"page: must have at most {DIGITS_MAX} digits"


@pytest.mark.requirement("interface.8.per-page")
def test_per_page_goes_from_1_to_100(received: Ask, refused: Ask) -> None:
    assert received("perPage=1")["per_page"] == 1
    assert received("perPage=100")["per_page"] == 100
    assert refused("perPage=0") == refused("perPage=101") == "perPage: must be an integer from 1 to 100"


@pytest.mark.requirement("loop.dates")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-02-30",
        "2025-02-29",
        "2026-13-01",
        "2026-00-10",
        "2026-1-1",
        "20261101",
        "2026-W01-1",
        "0000-01-01",
        "2026-01-01T00:00:00Z",
        "2026-01-01%0A",
        "%D9%A22026-01-01",
        "yesterday",
    ],
)
def test_impossible_dates_are_refused(refused: Ask, text: str) -> None:
    assert refused(f"dateFrom={text}") == "dateFrom: must be a calendar date of the form YYYY-MM-DD"


@pytest.mark.requirement("loop.duplicates")
@pytest.mark.parametrize("query", ["page=1&page=1", "category=RENT&category=RENT", "accountIds=a&accountIds=b"])
def test_a_parameter_may_be_given_once(refused: Ask, query: str) -> None:
    assert refused(query) == f"{query.partition('=')[0]}: must be given once"


@pytest.mark.requirement("loop.enum")
@pytest.mark.parametrize("text", ["", "rent", "RENT%20", "RENT%0A", "NULL", "None", "RENT,SALARY"])
def test_a_category_is_one_of_the_interface(refused: Ask, text: str) -> None:
    assert refused(f"category={text}").startswith("category: must be one of GROCERIES, RENT, SALARY, ")


@pytest.mark.requirement("loop.text")
@pytest.mark.parametrize("query", ["search=%00", "search=a%0A", "search=%7F", "accountIds=%00", "accountIds=a%0A"])
def test_texts_have_no_control_characters(refused: Ask, query: str) -> None:
    assert refused(query) == f"{query.partition('=')[0]}: contains characters that are not allowed"


@pytest.mark.requirement("loop.text")
def test_a_text_has_its_longest_length_and_no_more(received: Ask, refused: Ask) -> None:
    assert received("search=" + "%C3%BC" * 500)["search"] == "ü" * 500
    assert refused("search=" + "%C3%BC" * 501) == "search: must have at most 500 characters"


@pytest.mark.requirement("loop.encoding")
@pytest.mark.parametrize("text", ["%FF", "%C3", "%ED%A0%80", "%F5%80%80%80"])
def test_parameters_are_utf_8(refused: Ask, text: str) -> None:
    assert refused(f"search={text}") == "Parameters must be percent-encoded UTF-8"


@pytest.mark.requirement("loop.encoding")
@pytest.mark.parametrize("text", ["%", "100%", "%zz", "%4", "%u0041"])
def test_a_percent_sign_is_followed_by_two_digits(refused: Ask, text: str) -> None:
    assert refused(f"search={text}") == "A percent sign must be followed by two hexadecimal digits"


@pytest.mark.requirement("loop.encoding")
def test_there_is_a_limit_to_the_number_of_parameters(received: Ask, refused: Ask) -> None:
    assert received("&".join(["x=1"] * (FIELDS_MAX - 1) + ["page=3"]))["page"] == 3
    assert refused("&".join(["x=1"] * (FIELDS_MAX + 1))) == f"There must be at most {FIELDS_MAX} parameters"


@pytest.mark.requirement("loop.no-400")
@pytest.mark.parametrize("query", ["%FF", "page=x", "a=%", "&".join(["x=1"] * 300)])
def test_an_operation_without_parameters_has_no_bad_request(client: TestClient, query: str) -> None:
    for path in ("accounts", "transactions/txn_1", "sync/syn_1"):
        assert client.get(f"/api/v1/{path}?{query}").status_code == 200


@pytest.mark.requirement("loop.no-echo")
@pytest.mark.parametrize("name", ["page", "perPage", "category", "dateFrom", "dateTo", "accountIds", "search"])
def test_hostile_input_is_never_repeated(client: TestClient, name: str) -> None:
    answer = client.get(f"/api/v1/transactions?{name}=%3Cscript%3Ealert(1)%3C/script%3E%00{'A' * 30000}")
    assert answer.status_code == 400
    assert len(answer.content) < 300
    assert "script" not in answer.text
    assert "\n" not in answer.text


@pytest.mark.requirement("loop.integers")
@given(st.one_of(st.text(max_size=20), st.integers().map(str), st.text("-+0123456789 _", max_size=6)))
def test_whatever_is_read_as_an_integer_is_written_like_one(text: str) -> None:
    reader = Parameters([{"name": "n", "in": "query", "schema": {"type": "integer"}}], not_found="")
    encoded = "n=" + "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "ignore"))
    if re.fullmatch("-?(0|[1-9][0-9]*)", text, re.ASCII):
        assert reader.read({}, encoded.encode()) == {"n": int(text)}
    else:
        with pytest.raises(BadRequest, match="n: must be an integer"):
            reader.read({}, encoded.encode())


@pytest.mark.requirement("loop.arguments")
def test_names_become_those_of_functions() -> None:
    names = {"accountIds": "account_ids", "id": "id", "syncId": "sync_id", "perPage": "per_page", "x-y": "x_y"}
    assert {name: python_name(name) for name in names} == names


@pytest.mark.requirement("loop.startup")
@pytest.mark.parametrize(
    "described",
    [
        {"name": "h", "in": "header", "schema": {"type": "string"}},
        {"name": "n", "in": "query", "schema": {"type": "object"}},
    ],
)
def test_a_parameter_that_nothing_checks_stops_the_start(described: dict[str, Any]) -> None:
    with pytest.raises(NotImplementedError):
        Parameters([described], not_found="")


@pytest.mark.requirement("loop.arguments")
def test_a_required_parameter_that_is_missing_is_named() -> None:
    described = {"name": "q", "in": "query", "required": True, "schema": {"type": "string", "minLength": 2}}
    reader = Parameters([described], not_found="")
    assert reader.read({}, b"q=ab") == {"q": "ab"}
    for query, text in [(b"", "q: is required"), (b"q=a", "q: must have at least 2 characters")]:
        with pytest.raises(BadRequest, match=text):
            reader.read({}, query)


@pytest.mark.requirement("loop.arguments")
@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({}, "n: must be an integer"),
        ({"minimum": 1}, "n: must be an integer of at least 1"),
        ({"minimum": 1, "maximum": 9}, "n: must be an integer from 1 to 9"),
    ],
)
def test_a_number_is_refused_with_the_bounds_that_the_contract_states(bounds: dict[str, int], said: str) -> None:
    declared = {"name": "n", "in": "query", "required": False, "schema": {"type": "integer", **bounds}}
    with pytest.raises(BadRequest, match=f"^{said}$"):
        Parameters([declared], not_found="").read({}, b"n=many")


@given(st.one_of(st.text("ab=&;é ", max_size=20), st.text("a=&%2B+", max_size=20)))
def test_fields_are_read_as_the_standard_library_reads_them_with_and_without_escapes(text: str) -> None:
    try:
        read = form_fields(text.encode())
    except BadRequest:
        return  # a field given twice, a broken escape, or no UTF-8
    assert list(read.items()) == parse_qsl(text, keep_blank_values=True)
