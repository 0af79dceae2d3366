"""A server whose PostgreSQL fails without a word, or cannot be written to: within ten seconds everybody is answered
again, and until then told when to come again."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from handlers.work.services import open_services
from handlers.work.store_sharing import IS_WRITABLE
from storage import store_facts, users
from tests.conftest import empty_folder
from tests.engines import ENGINE
from tests.service.conftest import Served, running
from tests.silence import Between, between

pytestmark = pytest.mark.engine("one server")

TEN_SECONDS = 10.0
ADDRESS = {"PUBLIC_URL": "http://127.0.0.1:9999"}  # as whom tokens are made


@dataclass(frozen=True, slots=True)
class Silenced:
    """A server, the way to its database, the name of that, and a token of each of four users."""

    served: Served
    proxy: Between
    database: str
    tokens: list[str]

    def ask(self, token: str | None) -> httpx.Response:
        """An answer to this token, or of /readyz."""
        with self.served.bare(token) as client:
            answer = client.get("/accounts" if token else f"{self.served.address}/readyz")
        assert answer.status_code in (200, 503)
        assert answer.status_code == 200 or answer.headers["retry-after"] == "2"
        return answer

    def answered_again(self) -> float:
        """How long it takes until everybody is answered, and monitors are, of many times in a row the first."""
        began = time.monotonic()

        def first_answered(token: str | None) -> float:
            in_a_row, first = 0, 0.0
            while in_a_row < 4:
                in_a_row = in_a_row + 1 if self.ask(token).status_code == 200 else 0
                first = time.monotonic() - began if in_a_row == 1 else first
                assert first < 3 * TEN_SECONDS
            return first

        with ThreadPoolExecutor(len(self.tokens) + 1) as several:
            return max(several.map(first_answered, [*self.tokens, None]))

    def said(self, what: str) -> int:
        return self.served.log.read_text().count(f"the database is {what}")


@pytest.fixture(scope="module")
def silenced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Silenced]:
    folder = empty_folder(tmp_path_factory.mktemp("silenced") / "data")
    with closing(open_services(ENGINE.settings(folder, **ADDRESS))) as here, between(ENGINE.cluster.port) as proxy:
        [row] = here.everybody.rows("SELECT current_database() AS name")
        people = [
            users.add(
                here.everybody,
                name=name,
                password_hash=None,
                has_subscription=True,
                home_currency="EUR",
                now=here.clock.now(),
            )
            for name in ("ada", "eva", "max", "tom")
        ]
        scopes = frozenset({"read:accounts"})
        tokens = [
            here.authorization.issue_token(each.id, scopes, timedelta(days=1), resource="data") for each in people
        ]
        through = {
            "DATABASE_URL": f"postgresql://bankdata@127.0.0.1:{proxy.port}/{row['name']}",
            "DATABASE_APP_URL": f"postgresql://bankdata_app@127.0.0.1:{proxy.port}/{row['name']}",
        }
        with running(folder, command="serve", settings={**ADDRESS, **through}, is_measured=False) as it:
            yield Silenced(it, proxy, row["name"], tokens)
            assert "Traceback" not in it.log.read_text()


@pytest.mark.requirement("monitoring.ready")
def test_whether_the_database_can_be_written_to_is_tried_by_writing(tmp_path: Path) -> None:
    with closing(open_services(ENGINE.settings(empty_folder(tmp_path / "data")))) as services:
        assert services.is_ready()
        assert store_facts.recall(services.everybody, IS_WRITABLE) == "yes"


@pytest.mark.requirement("postgresql.silence")
def test_connections_that_acknowledge_and_say_nothing_are_replaced_within_ten_seconds(silenced: Silenced) -> None:
    silenced.answered_again()
    silenced.proxy.fall_silent()
    assert silenced.answered_again() < TEN_SECONDS
    assert (silenced.said("away"), silenced.said("back")) == (1, 1)
    assert silenced.served.log.read_text().count("not ready") <= 1, "however often a monitor asks"


@pytest.mark.requirement("postgresql.failover")
def test_a_database_that_cannot_be_written_to_makes_the_server_unready_until_it_can(silenced: Silenced) -> None:
    name = silenced.database
    ENGINE.cluster.sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    ENGINE.cluster.sql(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}'")
    began = time.monotonic()
    in_a_row = 0
    while in_a_row < 4:
        in_a_row = in_a_row + 1 if silenced.ask(None).status_code == 503 else 0
        assert time.monotonic() - began < TEN_SECONDS
    assert {silenced.ask(token).status_code for token in silenced.tokens} == {503}
    ENGINE.cluster.sql(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    assert silenced.answered_again() < TEN_SECONDS
    assert silenced.said("away") == silenced.said("back")
