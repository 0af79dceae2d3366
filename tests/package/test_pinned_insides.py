"""Packages whose insides we use are held at the minor version whose insides we have read."""

import re
import tomllib
from pathlib import Path

import pytest
from connexion.middleware.abstract import RoutedMiddleware
from connexion.middleware.routing import RoutingMiddleware
from packaging.requirements import Requirement
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from handlers.web.routing import Operations, Routing
from handlers.web.sockets.http_protocol import HttpProtocol
from handlers.web.sockets.request_and_answer import RequestAndAnswer

ROOT = Path(__file__).parents[2]
DEPENDENCIES = [
    Requirement(text) for text in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
]


def is_held(name: str) -> bool:
    """Whether a package may move within one minor version only."""
    (wanted,) = [each.specifier for each in DEPENDENCIES if each.name == name]
    bounds = {part.operator: part.version.split(".") for part in wanted}
    (major, minor), below = bounds[">="][:2], bounds["<"]
    return below == [major, str(int(minor) + 1)]


@pytest.mark.requirement("package.pinned")
def test_connexion_is_held_since_the_router_is_a_subclass_of_its_own_though_no_private_function_is_called() -> None:
    """What it passes to `add_api` of a middleware, and what its router leaves in the scope, is said in no manual."""
    assert issubclass(Routing, RoutingMiddleware)
    assert issubclass(Operations, RoutedMiddleware)
    private = re.compile(r"(?:application|super\(\)|router|specification|operation)\._[a-z]")
    sources = [path.read_text() for path in (ROOT / "handlers").rglob("*.py")]
    users = [source for source in sources if "handlers.web.framework import" in source and "uvicorn" not in source]
    assert len(users) > 5
    assert [private.findall(source) for source in users if private.search(source)] == []
    assert is_held("connexion")


@pytest.mark.requirement("package.pinned")
def test_uvicorn_is_held_since_the_protocol_is_a_subclass_of_its_insides() -> None:
    """Its bounds, and how it writes an answer, live in methods that uvicorn calls itself and promises to nobody."""
    assert issubclass(HttpProtocol, HttpToolsProtocol)
    overridden = set(vars(HttpProtocol)) & set(vars(HttpToolsProtocol)) - {"__init__", "__module__", "__doc__"}
    bounds = {"data_received", "connection_made", "connection_lost"}
    assert bounds | {"on_headers_complete", "on_response_complete"} <= overridden
    assert issubclass(RequestAndAnswer, RequestResponseCycle)
    assert "send" in set(vars(RequestAndAnswer)) & set(vars(RequestResponseCycle))
    assert is_held("uvicorn")
