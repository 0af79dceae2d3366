"""What a request costs through Connexion's own router, validation and exception middleware, beside ours (decision 147).

    python -m tests.benchmarks.connexion_part

The loop over the contract is called in this process, without a server; told are medians of processor time in
microseconds, of applications that take turns.
"""

import asyncio
import time
from collections.abc import Callable, MutableMapping
from statistics import median
from typing import Any

from connexion.middleware.exceptions import ExceptionMiddleware
from connexion.middleware.request_validation import RequestValidationMiddleware
from connexion.middleware.routing import RoutingMiddleware
from starlette.types import ASGIApp

import handlers.web.app
from handlers.web.routing import Routing
from handlers.web.steps.guard import guard
from handlers.web.steps.rate_limit import Limiter
from storage.boundary import is_failure
from tests.contract.conftest import OPERATIONS, authenticate

EACH, ROUNDS = 300, 9
http_app: Any = handlers.web.app  # what it imports is replaced for a moment
REQUESTS = {
    "accounts": ("GET", "/api/v1/accounts", b"", b""),
    "page": ("GET", "/api/v1/transactions", b"page=1&perPage=50&dateFrom=2026-01-01&category=GROCERIES", b""),
    "one": ("GET", "/api/v1/transactions/txn_1", b"", b""),
    "integrity": ("GET", "/api/v1/integrity", b"", b""),  # far behind in the contract
    "sync with a body": ("POST", "/api/v1/sync", b"", b'{"accountIds":["acc_1"]}'),
}


class TheirRouting(Routing):
    """Connexion's router without our lookup before it."""

    __call__ = RoutingMiddleware.__call__


class OurValidators:
    """Stands for validators compiled once: nothing is left to do for Connexion but to call them."""

    def __call__(self, *_: Any, **__: Any) -> "OurValidators":
        return self

    def validate(self, _scope: Any) -> None:
        """Nothing: our own step validates anyway."""

    async def wrap_receive(self, receive: Any, *, scope: Any) -> tuple[Any, Any]:
        return receive, scope


def without_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """The operation as one that answers at once, for the thread of a plain function costs more than all steps."""

    async def answer(request: Any, **arguments: Any) -> Any:
        made = function(request, **arguments)
        return await made if asyncio.iscoroutine(made) else made

    return answer


def application(
    *, routing: type[Routing] = Routing, before: tuple[Any, ...] = (), validators: OurValidators | None = None
) -> ASGIApp:
    """The loop with middlewares of Connexion `before` our operations."""
    usual, factory = http_app.Routing, http_app.ConnexionMiddleware

    def build(app: Any, *, middlewares: list[Any], **arguments: Any) -> Any:
        more: dict[str, Any] = {"validator_map": {"parameter": validators, "body": {"application/json": validators}}}
        return factory(
            app, middlewares=[middlewares[0], *before, *middlewares[1:]], **(more if validators else {}), **arguments
        )

    http_app.Routing, http_app.ConnexionMiddleware = routing, build
    try:
        made: ASGIApp = http_app.create_app(
            contract=http_app.CONTRACT_FILE.read_bytes(),
            operations={name: without_thread(function) for name, function in OPERATIONS.items()},
            guard=guard(authenticate, public_url="http://127.0.0.1:8000", billing_url="https://billing.example/plans"),
            public_url="http://127.0.0.1:8000",
            limiter=Limiter(rate=None),
            is_failure=is_failure,
        )
        return made
    finally:
        http_app.Routing, http_app.ConnexionMiddleware = usual, factory


async def ask(app: ASGIApp, method: str, path: str, query: bytes, body: bytes) -> None:
    statuses: list[int] = []
    headers = [(b"host", b"127.0.0.1"), (b"authorization", b"Bearer good")]
    if body:
        headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    scope: MutableMapping[str, Any] = {
        **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "root_path": ""},
        **{"method": method, "path": path, "raw_path": path.encode(), "query_string": query, "headers": headers},
        **{"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "extensions": {}},
    }

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        statuses.append(message.get("status", 0))

    await app(scope, receive, send)
    assert statuses[0] in (200, 202), path


async def main() -> None:
    apps = {
        "ours": application(),
        "their router": application(routing=TheirRouting),
        "their validation too": application(before=(RequestValidationMiddleware,)),
        "our validators in theirs": application(before=(RequestValidationMiddleware,), validators=OurValidators()),
        "their exceptions too": application(before=(ExceptionMiddleware,)),
    }
    spent: dict[tuple[str, str], list[float]] = {}
    for _ in range(ROUNDS):
        for request, asked in REQUESTS.items():
            for name, app in apps.items():
                begun = time.process_time()
                for _ in range(EACH):
                    await ask(app, *asked)
                spent.setdefault((name, request), []).append((time.process_time() - begun) / EACH * 1e6)
    for name in apps:
        print(f"{name:26}", *(f"{request} {median(spent[name, request]):.0f}" for request in REQUESTS), sep="  ")


if __name__ == "__main__":
    asyncio.run(main())
