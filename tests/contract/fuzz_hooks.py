"""Hooks of Schemathesis: a started job is read to its end before the next one is asked for.

A running job counts as recent (decision 25), so that nearly every POST /sync of a fuzzer would be answered 429.
"""

import time
from typing import Any

import requests
import schemathesis

JOB_SECONDS = 120.0
_open_jobs: list[tuple[str, str]] = []


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Reading a job moves it on (interface 4.9)."""
    if (case.method, case.operation.path) != ("POST", "/sync"):
        return
    while _open_jobs:
        address, authorization = _open_jobs.pop()
        deadline = time.monotonic() + JOB_SECONDS
        while time.monotonic() < deadline:
            job = requests.get(address, headers={"Authorization": authorization}, timeout=60).json()
            if job["status"] in ("completed", "failed"):
                break
            time.sleep(0.05)


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    """Remembers what was started, and by whom."""
    if (case.method, case.operation.path, response.status_code) != ("POST", "/sync", 202):
        return
    address = response.request.url.partition("?")[0]
    for job in response.json()["syncJobs"]:
        if job["syncId"] is not None:
            _open_jobs.append((f"{address}/{job['syncId']}", response.request.headers["Authorization"]))
