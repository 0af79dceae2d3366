"""Every call of an app or an assistant is in the record of its user, and so are those that were refused."""

from datetime import timedelta
from itertools import chain

import pytest

from auth.scopes import SCOPES
from storage.oauth.grants import Terms
from tests.explanations.conftest import Service
from tests.mcp.conftest import Assistant, assistant


@pytest.fixture
def reader(demo_service: Service) -> tuple[str, Assistant]:
    """An assistant of a user with no calls yet, and the user's id."""
    user_id = demo_service.newcomer().user.id
    name = demo_service.services.everybody.rows("SELECT name FROM users WHERE id = $1", user_id)[0]["name"]
    return user_id, assistant(demo_service, name)


def told(service: Service, user_id: str) -> dict[str, tuple[int, int]]:
    """Calls and refusals by operation; the operator's tokens of these tests aside."""
    entries = chain.from_iterable(service.services.authorization.record.hours(user_id))
    return {each.operation: (each.calls, each.refusals) for each in entries if each.operation != "issueToken"}


@pytest.mark.requirement("oauth.record")
def test_operations_and_tools_are_counted_alike_by_their_own_names(
    demo_service: Service, reader: tuple[str, Assistant]
) -> None:
    user_id, client = reader
    for _ in range(2):
        client.rest.get("/accounts")
    client.rest.get("/transactions", params={"search": "a secret word"})
    client.rest.get("/transactions/txn_nobody")
    client.result("get_overview")
    client.result("get_cashflow", months=10**9)
    client.tools()
    assert told(demo_service, user_id) == {
        "listAccounts": (2, 0),
        "listTransactions": (1, 0),
        "getTransaction": (1, 1),
        "get_overview": (1, 0),
        "get_cashflow": (1, 1),
    }


@pytest.mark.requirement("oauth.record")
def test_what_a_grant_does_not_allow_is_recorded_as_refused(
    demo_service: Service, reader: tuple[str, Assistant]
) -> None:
    user_id, _client = reader
    server = demo_service.services.authorization
    name = demo_service.services.everybody.rows("SELECT name FROM users WHERE id = $1", user_id)[0]["name"]
    poor = assistant(demo_service, name, frozenset({"read:cashflow"}))
    assert poor.asks("tools/call", {"name": "search_transactions", "arguments": {}}).status_code == 403
    figures = server.issue_token(user_id, frozenset(SCOPES), timedelta(hours=1), terms=Terms(figures_only=True))
    answer = poor.rest.get("/transactions", headers={"Authorization": f"Bearer {figures}"})
    assert answer.status_code == 403
    assert told(demo_service, user_id) == {"search_transactions": (1, 1), "listTransactions": (1, 1)}


@pytest.mark.requirement("oauth.record")
def test_who_shows_no_good_token_is_nobody_s_record(demo_service: Service, reader: tuple[str, Assistant]) -> None:
    user_id, client = reader
    assert client.rest.get("/accounts", headers={"Authorization": "Bearer nothing"}).status_code == 401
    assert told(demo_service, user_id) == {}
