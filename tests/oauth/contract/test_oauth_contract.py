"""The second description: valid, equal to the operations, true on the wire, and fuzzed."""

from typing import Any

import orjson
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from openapi_spec_validator import validate
from schemathesis.config import SchemathesisConfig
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from handlers.oauth.endpoints import description
from handlers.web.steps.bodies import BODY_BYTES_MAX
from tests.conftest import examples

pytestmark = pytest.mark.engine("duckdb")  # the engine has no part in it

PAGES = ("/oauth/authorize", "/oauth/login", "/oauth/consent", "/account")
BOUNDED = settings(
    max_examples=examples(60),
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.requirement("oauth.contract")
def test_the_description_is_valid_and_holds_no_python_names() -> None:
    document = description("")
    validate(document)
    text = orjson.dumps(document).decode()
    for name in ("handlers", "x-openapi-router", "connexion"):
        assert name not in text


@pytest.mark.requirement("oauth.contract")
@pytest.mark.parametrize("schema", ["TokenRequest", "RevocationRequest"])
def test_the_contract_refuses_no_value_that_fits_into_a_body(schema: str) -> None:
    fields = description("")["components"]["schemas"][schema]["properties"]
    assert {name: field["maxLength"] for name, field in fields.items()} == dict.fromkeys(fields, BODY_BYTES_MAX)


@pytest.mark.requirement("oauth.contract")
def test_examples_of_the_documents_are_what_a_default_server_answers(world: Any) -> None:
    for path, item in description("")["paths"].items():
        if path.startswith("/.well-known"):
            example = item["get"]["responses"]["200"]["content"]["application/json"]["example"]
            assert world.http.get(path).json() == example


@pytest.mark.requirement("oauth.contract")
@pytest.mark.long
def test_every_operation_survives_schemathesis(world: Any) -> None:
    config = SchemathesisConfig.from_dict({"generation": {"allow-x00": True}})
    schema = schemathesis.openapi.from_dict(description(""), config=config)
    schema.app = world.app
    for result in schema.get_all_operations():
        assert isinstance(result, Ok)
        operation = result.ok()
        check(operation, schemathesis.GenerationMode.POSITIVE)
        if operation.path in ("/oauth/token", "/oauth/revoke"):  # the others take nothing, or every JSON
            check(operation, schemathesis.GenerationMode.NEGATIVE)


def check(operation: Any, mode: Any) -> None:
    """Well-formed and invented may be refused: codes, tokens, clients that a schema cannot know."""
    checks = [
        schemathesis.checks.not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_headers_conformance,
        response_schema_conformance,
    ]

    @BOUNDED
    @given(case=operation.as_strategy(generation_mode=mode))
    def run(case: Any) -> None:
        case.call_and_validate(checks=checks)

    run()


@pytest.mark.requirement("oauth.bad_input")
@BOUNDED
@given(data=st.data())
def test_pages_answer_every_query_with_a_page_or_a_known_redirect(world: Any, data: st.DataObject) -> None:
    names = ["client_id", "redirect_uri", "response_type", "scope", "state", "code_challenge", "request", "notice"]
    names += ["authorization_details", "x"]
    query = data.draw(st.dictionaries(st.sampled_from(names), st.text(max_size=60), max_size=6))
    answer = world.http.get(data.draw(st.sampled_from(PAGES)), params=query)
    assert answer.status_code in (200, 303, 400)
    assert answer.headers.get("location", "/oauth/login").startswith(("/oauth/", "/account"))


@pytest.mark.requirement("oauth.bad_input")
@BOUNDED
@given(content=st.binary(max_size=300), path=st.sampled_from(("/oauth/token", "/oauth/revoke", "/oauth/register")))
def test_programs_get_json_for_every_body(world: Any, content: bytes, path: str) -> None:
    kind = "application/json" if path.endswith("register") else "application/x-www-form-urlencoded"
    answer = world.http.post(path, content=content, headers={"Content-Type": kind})
    assert answer.status_code in (400, 401)
    assert answer.json().keys() == {"error", "error_description"}
