"""Behind the second wall an operation that asks for another user is told nothing, whatever it says."""

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.concurrency import run_in_threadpool
from starlette.testclient import TestClient

from auth.scopes import SCOPES
from handlers.http.request import Answer, Request
from handlers.operations import KEPT, OTHERS
from handlers.server import application
from handlers.services import Services, open_services
from storage import users
from tests.engines import ENGINE

pytestmark = [pytest.mark.engine("one server"), pytest.mark.requirement("postgresql.second-wall")]

OWNERS = "SELECT user_id, count(*) AS found FROM transactions GROUP BY user_id"
Asked = Callable[[str], dict[str, int]]


def _found(services: Services, user_id: str) -> dict[str, int]:
    """Whose bookings a statement finds that names nobody, and how many one finds that names this user."""
    seen = {row["user_id"]: row["found"] for row in services.database.rows(OWNERS)}
    with services.database.transaction() as session:
        rows = session.rows("SELECT count(*) AS found FROM transactions WHERE user_id = $1", user_id)
    return {**seen, "asked for": rows[0]["found"]}


def kept(services: Services, _request: Request, _reading: Any, **arguments: Any) -> Answer:
    return Answer(body=_found(services, arguments["account_ids"]))


def plain(services: Services, _request: Request, **arguments: Any) -> dict[str, Any]:
    return _found(services, arguments["account_ids"])


async def awaited(services: Services, _request: Request, **arguments: Any) -> dict[str, Any]:
    return await run_in_threadpool(_found, services, arguments["account_ids"])


@pytest.fixture
def services(copied: Callable[[], Path]) -> Iterator[Services]:
    with closing(open_services(ENGINE.settings(copied(), RATE_LIMIT="off"))) as opened:
        yield opened


@pytest.mark.parametrize("operation", [kept, plain, awaited])
def test_an_operation_that_asks_with_the_id_of_another_user_gets_no_rows(
    services: Services, monkeypatch: pytest.MonkeyPatch, operation: Any
) -> None:
    if operation is kept:
        monkeypatch.setitem(KEPT, "getSnapshot", (operation, "figures", lambda _data, _arguments: False))
    else:
        monkeypatch.delitem(KEPT, "getSnapshot")
        monkeypatch.setitem(OTHERS, "getSnapshot", operation)
    demo, other = (users.named(services.database, name) for name in ("demo", "globe"))
    before = _found(services, other.id)
    assert before["asked for"] > 0, "who signs in, the worker and commands are not asked for one user"
    token = services.authorization.issue_token(demo.id, frozenset(SCOPES), timedelta(hours=1))
    with TestClient(application(services), base_url=services.settings.public_url) as client:
        headers = {"Authorization": f"Bearer {token}"}
        answer = client.get("/api/v1/snapshot", params={"accountIds": other.id}, headers=headers).json()
    assert answer == {demo.id: before[demo.id], "asked for": 0}


def test_a_start_with_a_role_that_sees_everything_is_refused(copied: Callable[[], Path]) -> None:
    settings = ENGINE.settings(copied())
    with pytest.raises(Exception, match="bankdata is none: make one that owns no table"):
        open_services(ENGINE.settings(settings.data_dir, DATABASE_APP_URL=settings.database_url))
