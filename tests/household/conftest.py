"""Two people of one store behind the real application, and what every operation answers an app of one of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from auth.principal import PAGE
from auth.scopes import ALL_SCOPES
from handlers.server import application
from handlers.work.services import Services, open_services
from storage import users
from storage.users import User
from tests.engines import ENGINE
from tests.imports.test_shares import Home

UNLIKE = ("nextCursor", "lastEventId", "checkedAt")  # tell the state of the data, which a share changes, and the time


@dataclass
class Served(Home):
    """The two people, whose apps may ask."""

    app: Any = None

    def asking(self, user_id: str, client_id: str = "") -> TestClient:
        """An app of this user with a grant of everything; with a `client_id`, this one."""
        server = self.services.authorization
        token = server.grants.issue_alone(
            user_id=user_id,
            client_id=client_id or server.clients.ensure_builtin(),
            scopes=frozenset(ALL_SCOPES),
            lifetime=timedelta(days=1),
        )
        return TestClient(
            self.app,
            base_url="http://127.0.0.1:8000/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            raise_server_exceptions=False,
        )

    @property
    def bens_app(self) -> TestClient:
        """An app to which Ben has given all that is his."""
        return self.asking(self.ben.id)

    @property
    def bens_page(self) -> TestClient:
        """The page on which Ben sees his money."""
        return self.asking(self.ben.id, PAGE)


def eva_and_ben(services: Services) -> Iterator[User]:
    """Two people who are new to a store."""
    for name in ("eva", "ben"):
        yield users.add(
            services.everybody, name=name, password_hash=None, has_subscription=True, home_currency="EUR",
            now=services.clock.now(),
        )  # fmt: skip


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    services = open_services(ENGINE.settings(tmp_path / "data", RATE_LIMIT="off"))
    eva, ben = eva_and_ben(services)
    home = Served(services, eva, ben, app=application(services))
    yield home
    home.services.close()


def answers(app: TestClient) -> dict[str, Any]:
    """What everything that only reads answers this app, by address, without the cursors of feeds; what takes an account
    is asked for all that the app sees."""
    owned = ",".join(each["id"] for each in app.get("/accounts").json()["accounts"])
    ids = [each["id"] for each in app.get(f"/transactions?accountIds={owned}&perPage=100").json()["transactions"]]
    streams = app.get(f"/subscriptions/details?accountIds={owned}&status=all").json()["subscriptions"]
    paths = [
        *("/accounts", "/accounts/hidden", "/accounts/merged", "/accounts/changes", "/balances", "/categories"),
        *("/connections", "/corrections", "/forecast?days=60", "/imports", "/integrity", "/layouts", "/profile"),
        *(
            "/rules",
            "/tags",
            "/targets",
            "/notices",
            "/overview",
            "/transactions/changes",
            "/transactions/taken-back",
            "/webhooks",
        ),
        *("/cashflow/categories?months=12", "/transactions/search?perPage=100&include=detailedCategory,annotation"),
        "/balances?perAccount=true&every=week",
        *(f"/transactions/totals?groupBy={key}" for key in ("category", "merchant", "account", "month", "tag")),
        *("/transactions/totals?groupBy=detailedCategory", "/transactions/totals?groupBy=ownCategory"),
        *(f"/transactions/{id_}{more}" for id_ in ids for more in ("", "/explanation", "/rule", "/annotation")),
        *(f"/subscriptions/{each['id']}?accountIds={owned}" for each in streams),
        *(
            f"{path}accountIds={owned}"
            for path in (
                *("/transactions?perPage=100&", "/cashflow?months=12&", "/snapshot?", "/subscriptions?"),
                *("/subscriptions/details?status=all&direction=all&", "/cashflow/2026-11/transactions?"),
                *("/snapshot/categories/OTHER/transactions?", "/transactions/export?format=csv&"),
                "/transactions/export?format=jsonl&",
                "/transactions/export?format=jsonl&include=annotation,everything&",
            )
        ),
    ]
    return {path: _answer(app, path, owned) for path in paths}


def _answer(app: TestClient, path: str, owned: str) -> Any:
    answer = app.get(path)
    if "json" not in answer.headers["content-type"] or "jsonl" in path:
        return answer.status_code, answer.text
    body = answer.json()
    assert answer.status_code == 200 or path.endswith("/rule"), (path, body)
    said = body | {"profile": _alike(body["profile"])} if path == "/overview" else body
    return _alike(said)


def _alike(said: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if name not in UNLIKE}
