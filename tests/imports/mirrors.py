"""Clients that keep copies of a user's transactions and accounts, by the very text of docs/mirror.md."""

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from auth.scopes import ALL_SCOPES
from handlers import json_shapes
from handlers.server import application
from storage import accounts, connections
from storage.database import Row, state_in
from storage.oauth.grants import EVERYTHING, Terms
from storage.transactions import DETAIL_COLUMNS
from tests.imports.household import Household

PAGE = Path(__file__).parents[2] / "docs" / "mirror.md"
Json = dict[str, Any]


def documented() -> Json:
    """What the code of the page defines."""
    code = PAGE.read_text().split("```python\n")[1].split("```")[0]
    defined: Json = {"__name__": "mirror"}
    exec(compile(code, str(PAGE), "exec"), defined)
    return defined


MIRROR: Callable[[sqlite3.Connection, Callable[[str | None], Json | None]], None] = documented()["mirror"]


def exact(text: str | bytes) -> Any:
    """JSON with its numbers as they are written."""
    return json.loads(text, parse_float=str)


@dataclass
class Served:
    """The household's store behind the real application."""

    household: Household
    app: ASGIApp = field(init=False)

    def __post_init__(self) -> None:
        self.app = application(self.household.services)

    def client(self, terms: Terms = EVERYTHING) -> TestClient:
        """A client with a token of the household's user."""
        authorization = self.household.services.authorization
        token = authorization.issue_token(
            self.household.user.id, frozenset(ALL_SCOPES), timedelta(days=365), terms=terms
        )
        return TestClient(
            self.app,
            base_url="http://127.0.0.1:8000/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            raise_server_exceptions=False,
        )

    def listed(self, account_ids: set[str] | None = None) -> dict[str, Json]:
        """The full list of transactions by id, read from the store without any feed."""
        database, user_id = self.household.services.everybody, self.household.user.id
        owned = accounts.of_user(database, user_id)
        by_id = {each.id: each for each in owned if account_ids is None or each.id in account_ids}
        rows: list[Row] = database.rows(
            f"SELECT {DETAIL_COLUMNS} FROM transactions WHERE user_id = $1 AND account_id = ANY($2::TEXT[])",
            user_id,
            list(by_id),
        )
        return {row["id"]: self._as_sent(json_shapes.transaction_detail(row, by_id)) for row in rows}

    def listed_accounts(self) -> dict[str, Json]:
        """The full list of accounts by id."""
        database, user_id = self.household.services.everybody, self.household.user.id
        statuses = connections.statuses(database, user_id)
        return {
            each.id: self._as_sent(json_shapes.account(each, statuses[each.connection_id]))
            for each in accounts.of_user(database, user_id)
        }

    def state(self) -> int:
        """The present state of the user's data."""
        return state_in(self.household.services.everybody, self.household.user.id)

    @staticmethod
    def _as_sent(body: Json) -> Json:
        sent: Json = exact(orjson.dumps(body))
        return sent


@dataclass
class Mirror:
    """One client's copy. `pages_max` is how many pages it reads before it does something else."""

    client: TestClient
    path: str = "/transactions/changes"
    limit: int = 500
    query: Json = field(default_factory=dict)
    store: sqlite3.Connection = field(default_factory=lambda: sqlite3.connect(":memory:"))
    pages: list[Json] = field(default_factory=list)
    restarts: int = 0

    def ask(self, cursor: str | None) -> Json | None:
        """One page; None for 410."""
        said = {"limit": self.limit, **self.query, **({"cursor": cursor} if cursor else {})}
        answer = self.client.get(self.path, params=said)
        if answer.status_code == 410:
            self.restarts += 1
            return None
        assert answer.status_code == 200, answer.text
        page: Json = exact(answer.content)
        ids = [each["id"] for name in ("added", "modified", "removed") for each in page[name]]
        assert len(set(ids)) == len(ids) <= self.limit, "an id stands in one list of a page"
        assert len(page["nextCursor"]) <= 300
        self.pages.append(page)
        return page

    def read(self, *, pages_max: int | None = None) -> bool:
        """Read to the end, or so many pages; whether the end was reached."""
        left = pages_max

        class Interrupted(Exception):
            pass

        def some(cursor: str | None) -> Json | None:
            nonlocal left
            if left is not None:
                if not left:
                    raise Interrupted
                left -= 1
            return self.ask(cursor)

        try:
            MIRROR(self.store, some)
        except Interrupted:
            return False
        return True

    @property
    def rows(self) -> dict[str, Json]:
        """The copy by id."""
        return {id_: json.loads(row) for id_, row in self.store.execute("SELECT id, row FROM transactions")}

    @property
    def cursor(self) -> str:
        """Where the client stands."""
        return str(self.store.execute("SELECT cursor FROM position").fetchone()[0])

    def copy(self) -> "Mirror":
        """Another client that has read as far."""
        store = sqlite3.connect(":memory:")
        self.store.backup(store)
        return Mirror(self.client, self.path, self.limit, self.query, store)
