"""openapi.json says what the interface says, and nothing of the program behind it."""

import pkgutil
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest
from connexion.exceptions import InvalidSpecification
from connexion.spec import OpenAPISpecification, Specification
from openapi_spec_validator import validate

from handlers.server import application
from handlers.settings import load
from handlers.web.app import CONTRACT_FILE
from handlers.web.descriptions import specification
from handlers.work.services import open_services
from tests.conftest import empty_folder

CONTRACT: dict[str, Any] = orjson.loads(CONTRACT_FILE.read_bytes())

# interface sections 4 and 7: operation, scope, statuses; POST /sync reads a body, so it also has 400, 413 and 415
INTERFACE = """
    get  /accounts          | read:accounts     | 200 401 403 429 500 503
    get  /transactions      | read:transactions | 200 400 401 403 429 500 503
    get  /transactions/{id} | read:transactions | 200 401 403 404 429 500 503
    get  /cashflow          | read:cashflow     | 200 400 401 403 429 500 503
    get  /snapshot          | read:accounts     | 200 400 401 403 429 500 503
    get  /subscriptions     | read:cashflow     | 200 400 401 403 429 500 503
    post /sync              | read:accounts     | 202 400 401 403 404 413 415 429 500 503
    get  /sync/{syncId}     | read:accounts     | 200 401 403 404 500 503
"""
ROWS = [tuple(part.strip() for part in line.split("|")) for line in INTERFACE.strip().splitlines()]


def operation(named: str) -> dict[str, Any]:
    method, path = named.split()
    described: dict[str, Any] = CONTRACT["paths"][path][method]
    return described


def schema(name: str) -> dict[str, Any]:
    described: dict[str, Any] = CONTRACT["components"]["schemas"][name]
    return described


@pytest.mark.requirement("contract.valid")
def test_connexion_finds_all_descriptions_of_the_service_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pkgutil.get_data("connexion", "resources/schemas/v3.0/schema.json")
    monkeypatch.setattr(OpenAPISpecification, "openapi_schema", orjson.loads(schema or b""))
    specification.cache_clear()
    with closing(open_services(load({}, data_dir=empty_folder(tmp_path / "data")))) as services:
        application(services)
    assert specification.cache_info().misses == 5  # each was read anew, and checked
    untyped: Any = Specification
    with pytest.raises(InvalidSpecification):
        untyped.load({"openapi": "3.0.3", "info": {"title": "t"}, "paths": {}})


@pytest.mark.requirement("contract.valid")
def test_the_contract_is_valid_openapi() -> None:
    validate(CONTRACT)
    assert CONTRACT["openapi"] == "3.0.3"
    assert CONTRACT["info"]["version"] == "1.0.0"


@pytest.mark.requirement("contract.operations")
@pytest.mark.parametrize(("named", "scope", "statuses"), ROWS)
def test_every_operation_has_its_scope_and_its_statuses(named: str, scope: str, statuses: str) -> None:
    assert operation(named)["security"] == [{"oauth2": [scope]}]
    assert sorted(operation(named)["responses"]) == statuses.split()


@pytest.mark.requirement("contract.operations")
@pytest.mark.parametrize("named", [row[0] for row in ROWS])
def test_refusals_carry_the_headers_that_clients_act_on(named: str) -> None:
    responses = {
        status: CONTRACT["components"]["responses"][response["$ref"].rpartition("/")[2]]
        for status, response in operation(named)["responses"].items()
        if "$ref" in response
    }
    headers = CONTRACT["components"]["headers"]
    challenge = responses["401"]["headers"]["WWW-Authenticate"]["$ref"].rpartition("/")[2]
    assert headers[challenge]["required"] is True
    if "429" in responses:
        wait = responses["429"]["headers"]["Retry-After"]["$ref"].rpartition("/")[2]
        assert headers[wait]["required"] is True
    for response in responses.values():
        assert response["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Error"}


# interface section 2: fields, required ones with *, nullable ones with ?
FIELDS = {
    "Account": "id* accountName? iban? accountType? balance? currency* lastSyncedAt? bankConnection*",
    "BankConnectionInfo": "bankName* status*",
    "BankAccountRef": "id* iban? accountName? bankConnection*",
    "BankName": "bankName*",
    "Transaction": "id* amount* currency* bookingDate* valueDate? merchantName? counterpartName? counterpartIban? "
    "counterpartMandateReference? type? category? purpose? bankAccount*",
    "Pagination": "page* perPage* total* pageCount*",
    "MonthlyCashflow": "month* income* expenses* net*",
    "SnapshotAccount": "name* bank* balance* currency*",
    "TopCategory": "category* amount* percentage*",
    "DetectedSubscription": "merchantName* amount* currency* frequency* lastCharged* occurrences*",
    "SyncJobSummary": "syncId? status error?",
    "SyncJobStatus": "syncId* status* newTransactions error? createdAt* updatedAt",
    "Error": "error*",
}
DETAIL = (
    "counterpartBic? counterpartBankName? counterpartCreditorId? counterpartDebitorId? bankTransactionCode? "
    "sepaPurposeCode? isPotentialDuplicate isAdjustingEntry createdAt"
)


@pytest.mark.requirement("contract.fields")
@pytest.mark.parametrize(("name", "fields"), FIELDS.items())
def test_schemas_have_the_fields_of_the_interface(name: str, fields: str) -> None:
    assert described_fields(schema(name)) == fields


@pytest.mark.requirement("contract.fields")
def test_the_detail_is_a_transaction_and_more() -> None:
    whole, more = schema("TransactionDetail")["allOf"]
    assert whole == {"$ref": "#/components/schemas/Transaction"}
    assert described_fields(more) == DETAIL


def described_fields(described: dict[str, Any]) -> str:
    required = described.get("required", [])
    return " ".join(
        name + ("*" if name in required else "") + ("?" if is_nullable(field) else "")
        for name, field in described["properties"].items()
    )


def is_nullable(field: dict[str, Any]) -> bool:
    return any(branch.get("nullable", False) for branch in [field, *field.get("anyOf", [])])


@pytest.mark.requirement("contract.no-python")
def test_the_contract_names_nothing_of_the_program() -> None:
    text = CONTRACT_FILE.read_text()
    assert not re.search(r"x-openapi-router|handlers|[a-z]+_[a-z]+Func|python|\.py\b", text)
    ids = [operation(row[0])["operationId"] for row in ROWS]
    assert ids == [
        "listAccounts",
        "listTransactions",
        "getTransaction",
        "getCashflow",
        "getSnapshot",
        "listSubscriptions",
        "startSync",
        "getSyncJob",
    ]


@pytest.mark.requirement("contract.oauth2")
def test_the_security_scheme_names_addresses_of_this_host_only() -> None:
    scheme = CONTRACT["components"]["securitySchemes"]["oauth2"]
    flow = scheme["flows"]["authorizationCode"]
    assert scheme["type"] == "oauth2"
    assert (flow["authorizationUrl"], flow["tokenUrl"], flow["refreshUrl"]) == (
        "/oauth/authorize",
        "/oauth/token",
        "/oauth/token",
    )
    reading = ["read:accounts", "read:transactions", "read:cashflow"]
    assert list(flow["scopes"]) == [
        *reading,
        "write:imports",
        "write:rules",
        "read:annotations",
        "write:annotations",
        "write:accounts",
    ]
    assert CONTRACT["servers"][0]["url"] == "/api/v1"


@pytest.mark.requirement("contract.links")
@pytest.mark.parametrize(
    ("named", "status", "target", "argument", "source"),
    [
        ("post /sync", "202", "getSyncJob", "syncId", "$response.body#/syncJobs/0/syncId"),
        ("get /transactions", "200", "getTransaction", "id", "$response.body#/transactions/0/id"),
        ("get /accounts", "200", "listTransactions", "accountIds", "$response.body#/accounts/0/id"),
        ("get /accounts", "200", "getCashflow", "accountIds", "$response.body#/accounts/0/id"),
        ("get /accounts", "200", "getSnapshot", "accountIds", "$response.body#/accounts/0/id"),
        ("get /accounts", "200", "listSubscriptions", "accountIds", "$response.body#/accounts/0/id"),
        ("get /accounts", "200", "startSync", "accountIds", "$response.body#/accounts/0/id"),
    ],
)
def test_links_lead_from_answers_to_what_comes_next(
    named: str, status: str, target: str, argument: str, source: str
) -> None:
    links = operation(named)["responses"][status]["links"].values()
    assert {argument: source} in [link["parameters"] for link in links if link["operationId"] == target]


@pytest.mark.requirement("contract.bounds")
def test_every_text_and_list_of_the_contract_is_bounded() -> None:
    unbounded = [place for place, node in walk(CONTRACT, "#") if is_unbounded(node)]
    assert unbounded == []


def is_unbounded(node: dict[str, Any]) -> bool:
    if node.get("type") == "array":
        return "maxItems" not in node
    return node.get("type") == "string" and not {"maxLength", "enum"} & node.keys()


def walk(node: Any, place: str) -> list[tuple[str, dict[str, Any]]]:
    if isinstance(node, list):
        return [found for index, child in enumerate(node) for found in walk(child, f"{place}/{index}")]
    if not isinstance(node, dict):
        return []
    return [(place, node), *(found for key, child in node.items() for found in walk(child, f"{place}/{key}"))]
