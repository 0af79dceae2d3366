"""What is in memory is answered over PostgreSQL by the event loop, until another process changes the data."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from auth.scopes import SCOPES
from handlers.server import application
from handlers.work.services import Services, open_services
from storage import accounts, users
from storage.engines.postgresql_session import Statements
from tests.engines import ENGINE, opened

pytestmark = pytest.mark.engine("one server")

SECONDS_MAX = 60.0
PATHS = ("/accounts", "/transactions?perPage=5&accountIds={}", "/cashflow?accountIds={}", "/snapshot?accountIds={}")
FEED = "/accounts/changes"


@pytest.mark.requirement("postgresql.states")
def test_what_was_asked_before_takes_no_statement_but_the_state_until_another_process_changes_it(
    copied: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    services = open_services(ENGINE.settings(copied(), RATE_LIMIT="off"))
    asked: list[str] = []
    run = Statements._run

    def watched(session: Statements, sql: str, parameters: Sequence[Any], *more: Any) -> Any:
        if "oauth_" not in sql and "has_subscription" not in sql:  # grants are looked at once a second
            asked.append(sql)
        return run(session, sql, parameters, *more)

    async def read() -> None:
        user = users.get_by_name(services.everybody, "demo")
        async with client_of(services, user.id) as client:
            account = (await client.get("/accounts")).json()["accounts"][0]["id"]

            polled = f"{FEED}?cursor={(await client.get(FEED)).json()['nextCursor']}"
            asked_for = [*PATHS, polled]

            async def answers() -> list[bytes]:
                return [(await client.get(path.format(account))).raise_for_status().content for path in asked_for]

            async with asyncio.timeout(SECONDS_MAX):
                before = await answers()
                while await services.store.state_without_thread(user.id) is None:
                    await asyncio.sleep(0.01)
            monkeypatch.setattr(Statements, "_run", watched)
            asked.clear()
            assert list(await asyncio.gather(answers(), answers())) == [before, before]
            assert asked == []
            with closing(opened(services.settings.database_url)) as other:
                renamed = partial(accounts.rename, user_id=user.id, account_id=account, name="Household")
                await asyncio.to_thread(other.atomically, renamed)
            for answer in ((await answers())[0], (await client.get(polled)).content):
                assert b'"accountName":"Household"' in answer

    try:
        asyncio.run(read())
    finally:
        services.close()


def client_of(services: Services, user_id: str) -> httpx.AsyncClient:
    """An app of this user, in the same event loop as the service."""
    token = services.authorization.issue_token(user_id, frozenset(SCOPES), timedelta(hours=1))
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app=application(services)),
        base_url="http://127.0.0.1:8000/api/v1",
        headers={"Authorization": f"Bearer {token}"},
    )
