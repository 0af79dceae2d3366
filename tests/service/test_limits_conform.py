"""60 requests per 60 seconds and address, counted over a real connection; and a window that slides."""

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.service.conftest import running

pytestmark = pytest.mark.engine("duckdb")  # the engine has no part in it


@pytest.mark.requirement("interface 8 rate")
@pytest.mark.requirement("decision 32")
@pytest.mark.long
def test_60_requests_a_minute_are_answered_and_the_61st_is_not(copied: Callable[[], Path]) -> None:
    with running(copied(), settings={"RATE_LIMIT": "60/60s"}, is_measured=False) as served:
        client = served.client("solo")
        (job,) = client.post("/sync").json()["syncJobs"]
        answers = [client.get(path) for path in ("/accounts", "/cashflow", "/snapshot") for _ in range(19)]
        answers += [client.get("/subscriptions"), client.get("/transactions")]
        assert {answer.status_code for answer in answers} == {200}
        left = [re.fullmatch(r'"default";r=(\d+);t=(\d+)', answer.headers["ratelimit"]) for answer in answers]
        assert [int(match[1]) for match in left if match] == list(range(58, -1, -1))
        assert {answer.headers["ratelimit-policy"] for answer in answers} == {'"default";q=60;w=60'}
        refused = client.get("/transactions")
        assert (refused.status_code, refused.json()) == (429, {"error": "Rate limit exceeded"})
        seconds = int(refused.headers["retry-after"])
        assert 1 <= seconds <= 60
        assert re.fullmatch(rf'"default";r=0;t=({seconds})', refused.headers["ratelimit"])
        with served.bare() as nobody:
            assert nobody.get("/accounts").status_code == 429, "the limit comes before the token"
        for _ in range(5):
            assert client.get(f"/sync/{job['syncId']}").status_code == 200, "polling a job is never refused"
        forged = client.get("/accounts", headers={"X-Forwarded-For": "198.51.100.7"})
        assert forged.status_code == 429


@pytest.mark.requirement("decision 32")
@pytest.mark.long
def test_the_window_slides_and_refused_requests_do_not_lengthen_the_wait(copied: Callable[[], Path]) -> None:
    with running(copied(), settings={"RATE_LIMIT": "3/5s"}, is_measured=False) as served:
        client = served.client("solo")
        client.get("/accounts")
        time.sleep(5.1)
        first = time.monotonic()
        assert [client.get("/accounts").status_code for _ in range(4)] == [200, 200, 200, 429]
        while (status := client.get("/accounts").status_code) == 429:
            assert time.monotonic() - first < 8
            time.sleep(0.05)
        assert status == 200
        assert time.monotonic() - first > 4.9


@pytest.mark.requirement("decision 32")
@pytest.mark.long
def test_a_believed_proxy_names_the_client(copied: Callable[[], Path]) -> None:
    settings = {"RATE_LIMIT": "2/60s", "TRUSTED_PROXIES": "127.0.0.1"}
    with running(copied(), settings=settings, is_measured=False) as served:
        client = served.client("solo")
        for address in ("198.51.100.1", "198.51.100.2"):
            headers = {"X-Forwarded-For": address}
            codes = [client.get("/accounts", headers=headers).status_code for _ in range(3)]
            assert codes == [200, 200, 429]
        shared = [
            client.get("/accounts", headers={"X-Forwarded-For": f"2001:db8:1:2::{number}"}).status_code
            for number in range(3)
        ]
        assert shared == [200, 200, 429]
