"""A running demo, its description, and for every user the arguments of every operation."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.clients.calls import Call, all_calls
from tests.contract.demo_server import Demo, running_demo
from tests.service.conftest import copied, demo_store

__all__ = ["copied", "demo_store"]  # fixtures of the service's tests, for these too

CallsOf = Callable[[str], list[Call]]


@pytest.fixture(scope="session")
def demo(copied: Callable[[], Path]) -> Iterator[Demo]:
    with running_demo(copied().parent, RATE_LIMIT="off", SYNC_COOLDOWN_SECONDS="0") as running:
        yield running


@pytest.fixture(scope="session")
def description() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((Path(__file__).parents[2] / "openapi.json").read_bytes())
    return document


@pytest.fixture(scope="session")
def calls_of(demo: Demo, description: Mapping[str, Any]) -> CallsOf:
    """Every operation as one user would call it."""
    return lambda user: all_calls(demo, description, demo.token(user))
