"""Hooks of Schemathesis: what was started and goes on is read to its end before another change is asked for.

A running job counts as recent (decision 25), so that nearly every POST /sync of a fuzzer would be answered 429; and on
a busy machine an import that goes on after its answer holds up the next change for longer than that may wait.
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
    if case.method == "GET":
        return
    while _open_jobs:
        address, authorization = _open_jobs.pop()
        deadline = time.monotonic() + JOB_SECONDS
        while time.monotonic() < deadline:
            job = requests.get(address, headers={"Authorization": authorization}, timeout=60).json()
            if job["status"] in ("completed", "failed", "done"):
                break
            time.sleep(0.05)


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    """Remembers what was started, and by whom."""
    if response.status_code != 202 or case.operation.path not in ("/sync", "/imports"):
        return
    address = response.request.url.partition("?")[0]
    told = response.json()
    for id_ in [told["importId"]] if "importId" in told else [job["syncId"] for job in told["syncJobs"]]:
        if id_ is not None:
            _open_jobs.append((f"{address}/{id_}", response.request.headers["Authorization"]))
