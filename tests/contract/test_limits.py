"""The rate limit: 60 requests in any 60 seconds, per client address, over seven operations (decision 32)."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Scope

from handlers.commands.control_socket import ControlServer
from handlers.server import run
from handlers.settings import load
from handlers.web.errors import TooManyRequests
from handlers.web.sockets.listening_socket import listening_socket
from handlers.web.steps.rate_limit import CountsUnusable, Limiter, Rate
from handlers.web.steps.sliding_windows import WindowMemory
from handlers.work.services import open_services

SIXTY = Rate(requests=60, seconds=60)
SEVEN = [
    ("GET", "/api/v1/accounts"),
    ("GET", "/api/v1/transactions"),
    ("GET", "/api/v1/transactions/txn_1"),
    ("GET", "/api/v1/cashflow"),
    ("GET", "/api/v1/snapshot"),
    ("GET", "/api/v1/subscriptions"),
    ("POST", "/api/v1/sync"),
]


class Hand:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture
def limited(make_app: Callable[..., ASGIApp], connect: Callable[..., TestClient], clock: Hand) -> TestClient:
    """A client of the interface's own limit."""
    return connect(make_app(limiter=Limiter(rate=SIXTY, clock=clock)))


@pytest.mark.requirement("interface.8.rate")
def test_the_sixtieth_request_is_served_and_the_next_refused(limited: TestClient) -> None:
    answers = [limited.get("/api/v1/accounts") for _ in range(61)]
    assert [answer.status_code for answer in answers] == [200] * 60 + [429]
    assert answers[60].json() == {"error": "Rate limit exceeded"}


@pytest.mark.requirement("interface.8.rate")
def test_the_seven_operations_share_one_budget_and_the_job_has_none(limited: TestClient) -> None:
    for number in range(60):
        assert limited.request(*SEVEN[number % 7]).status_code in (200, 202)
    assert {limited.request(*asked).status_code for asked in SEVEN} == {429}
    answers = [limited.get("/api/v1/sync/syn_1") for _ in range(70)]
    assert {answer.status_code for answer in answers} == {200}
    assert "ratelimit" not in answers[0].headers


@pytest.mark.requirement("interface.8.rate")
def test_other_paths_and_methods_and_head_of_them_cost_nothing_or_the_same(limited: TestClient) -> None:
    for path in ("/nowhere", "/api/openapi.json", "/docs", "/healthz"):
        assert "ratelimit" not in limited.get(path).headers
    limited.put("/api/v1/accounts")
    assert limited.head("/api/v1/accounts").headers["ratelimit"] == '"default";r=59;t=60'


@pytest.mark.requirement("interface.8.rate")
def test_the_window_slides(limited: TestClient, clock: Hand) -> None:
    for _ in range(30):
        limited.get("/api/v1/accounts")
    clock.seconds += 40
    for _ in range(30):
        limited.get("/api/v1/accounts")
    clock.seconds += 19.99
    assert limited.get("/api/v1/accounts").status_code == 429
    clock.seconds += 0.01  # the first thirty are 60 seconds old, the others 20
    assert [limited.get("/api/v1/accounts").status_code for _ in range(31)] == [200] * 30 + [429]


@pytest.mark.requirement("interface.8.rate")
def test_refused_requests_do_not_lengthen_the_wait(limited: TestClient, clock: Hand) -> None:
    for _ in range(60):
        limited.get("/api/v1/accounts")
    for _ in range(59):
        clock.seconds += 1
        assert limited.get("/api/v1/accounts").status_code == 429
    clock.seconds += 1
    assert limited.get("/api/v1/accounts").status_code == 200


@pytest.mark.requirement("decision.32.headers")
def test_every_limited_answer_says_what_is_left(limited: TestClient, clock: Hand) -> None:
    first = limited.get("/api/v1/accounts")
    assert first.headers["ratelimit-policy"] == '"default";q=60;w=60'
    assert first.headers["ratelimit"] == '"default";r=59;t=60'
    clock.seconds += 10.5
    assert limited.get("/api/v1/transactions?page=x").headers["ratelimit"] == '"default";r=58;t=50'
    assert limited.get("/api/v1/accounts", headers={"Authorization": "x"}).headers["ratelimit"] == '"default";r=57;t=50'


@pytest.mark.requirement("decision.32.headers")
def test_a_refusal_says_how_long_to_wait_and_waiting_helps(limited: TestClient, clock: Hand) -> None:
    for _ in range(60):
        limited.get("/api/v1/accounts")
    clock.seconds += 42.5
    refused = limited.get("/api/v1/accounts")
    assert refused.headers["retry-after"] == "18"
    assert refused.headers["ratelimit"] == '"default";r=0;t=18'
    clock.seconds += 18
    assert limited.get("/api/v1/accounts").status_code == 200


@pytest.mark.requirement("decision.29")
def test_the_limit_comes_before_the_token(
    make_app: Callable[..., ASGIApp], connect: Callable[..., TestClient], clock: Hand
) -> None:
    client = connect(make_app(limiter=Limiter(rate=Rate(2, 60), clock=clock)), token="unknown")
    assert [client.get("/api/v1/accounts").status_code for _ in range(3)] == [401, 401, 429]


@pytest.mark.requirement("decision.32.retry-after")
@pytest.mark.parametrize(("wait", "expected"), [(0, "60"), (59, "60"), (61, "61"), (1740, "1740")])
def test_the_other_429_never_sends_back_earlier_than_the_window(
    make_app: Callable[..., ASGIApp], connect: Callable[..., TestClient], clock: Hand, wait: int, expected: str
) -> None:
    def start_sync(_request: object, **_arguments: object) -> dict[str, object]:
        raise TooManyRequests("All bank connections were synced recently.", wait)

    client = connect(make_app({"startSync": start_sync}, limiter=Limiter(rate=SIXTY, clock=clock)))
    answer = client.post("/api/v1/sync")
    assert (answer.status_code, answer.headers["retry-after"]) == (429, expected)
    assert answer.json() == {"error": "All bank connections were synced recently."}


@pytest.mark.requirement("decision.32.proxies")
def test_clients_behind_a_trusted_proxy_have_budgets_of_their_own(
    make_app: Callable[..., ASGIApp], clock: Hand
) -> None:
    def statuses(trusted: list[str]) -> list[int]:
        app = make_app(limiter=Limiter(rate=Rate(1, 60), clock=clock), trusted_proxies=trusted)
        client = TestClient(app, client=("10.0.0.1", 1), headers={"Authorization": "Bearer good"})
        return [
            client.get("/api/v1/accounts", headers={"X-Forwarded-For": f"203.0.113.{number}"}).status_code
            for number in (1, 2, 2)
        ]

    assert statuses([]) == [200, 429, 429]
    assert statuses(["10.0.0.0/8"]) == [200, 200, 429]


@pytest.mark.requirement("decision.32.off")
def test_without_a_rate_nothing_is_counted(client: TestClient) -> None:
    answers = [client.get("/api/v1/accounts") for _ in range(70)]
    assert {answer.status_code for answer in answers} == {200}
    assert "ratelimit" not in answers[-1].headers


@pytest.mark.requirement("decision.32.budgets")
def test_budgets_and_clients_know_nothing_of_each_other(clock: Hand) -> None:
    limiter, rate = Limiter(clock=clock), Rate(1, 60)

    def take(budget: str, client: str) -> bool:
        return asyncio.run(limiter.take(budget, rate, client)).is_granted

    assert take("default", "a")
    assert take("default", "b")
    assert take("oauth", "a")
    assert not take("default", "a")


@pytest.mark.requirement("decision.32.outage")
def test_a_redis_that_does_not_answer_is_asked_once_a_second_and_named_once(
    clock: Hand, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[float] = []

    def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(clock.seconds)
        writer.close()

    async def left() -> list[int]:
        async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as redis:
            limiter = Limiter("redis://{}:{}/0".format(*redis.sockets[0].getsockname()), clock=clock)
            quotas = []
            for pause in (0, 0.75, 0.25, -3600):  # a clock that was set back does not silence it for an hour
                clock.seconds += pause
                quotas += [await limiter.take("default", Rate(12, 60), "a") for _ in range(3)]
            return [quota.remaining for quota in quotas]

    start = clock.seconds
    assert asyncio.run(left()) == list(range(11, -1, -1))
    assert asked == [start, start + 1, start + 1 - 3600]
    assert caplog.messages == ["Redis does not count requests (ConnectionError): this process counts for itself"]


@pytest.mark.requirement("limits.sliding")
@given(st.lists(st.floats(min_value=0, max_value=30), max_size=40))
def test_in_no_window_more_than_allowed_and_whoever_waits_is_served(pauses: list[float]) -> None:
    clock, rate = Hand(), Rate(requests=3, seconds=60)
    limiter = Limiter(clock=clock)
    granted: list[float] = []
    for pause in pauses:
        clock.seconds += pause
        quota = asyncio.run(limiter.take("default", rate, "a"))
        inside = [at for at in granted if at > clock.seconds - 60]
        assert quota.is_granted == (len(inside) < 3)
        if quota.is_granted:
            granted.append(clock.seconds)
            inside.append(clock.seconds)
        assert quota.remaining == 3 - len(inside)
        assert 0 <= quota.reset_seconds - (inside[0] + 60 - clock.seconds) < 1 or quota.reset_seconds == 1


@pytest.mark.requirement("limits.memory")
def test_clients_that_went_away_are_forgotten(clock: Hand) -> None:
    memory = WindowMemory(clock)

    def visit(count: int) -> None:
        for number in range(count):
            is_granted, _, _ = memory.take("default", f"{clock.seconds}-{number}", most=60, seconds=60)
            assert is_granted

    visit(500)
    assert len(memory) == 500
    clock.seconds += 60
    visit(500)
    assert len(memory) == 500


@pytest.mark.requirement("decision.32.storage")
@pytest.mark.parametrize("url", ["nowhere://127.0.0.1", "redis://127.0.0.1:port"])
def test_an_address_of_counts_that_means_nothing_stops_the_start(url: str) -> None:
    with pytest.raises(CountsUnusable, match="the store of the rate limit cannot be used: "):
        Limiter(url)


@pytest.mark.requirement("decision.32.storage")
@pytest.mark.parametrize("takes_commands", [True, False])
def test_a_server_that_cannot_count_does_not_start_and_leaves_nothing_open(
    tmp_path: Path, takes_commands: bool
) -> None:
    settings = load({"BANKDATA_RATE_LIMIT_URL": "redis://127.0.0.1:port"}, data_dir=tmp_path)
    with closing(open_services(settings)) as services, closing(listening_socket("127.0.0.1", 0)) as listener:
        with pytest.raises(CountsUnusable):
            run(services, listener=listener, ready=print, takes_commands=takes_commands)
        ControlServer(tmp_path, print).close(within=0)  # its place is free again


@pytest.mark.requirement("interface.8.rate")
def test_the_page_spends_the_budget_of_its_person_and_not_that_of_the_household(
    make_app: Callable[..., ASGIApp], connect: Callable[..., TestClient], clock: Hand
) -> None:
    def person_of(scope: Scope) -> str | None:
        return dict(scope["headers"]).get(b"x-person", b"").decode() or None

    client = connect(make_app(limiter=Limiter(rate=Rate(2, 60), clock=clock), person_of=person_of))
    asked = [client.get("/api/v1/accounts", headers={"x-person": each}).status_code for each in ("a", "b", "", "") * 2]
    assert asked == [200, 200, 200, 200, 200, 200, 429, 429]
