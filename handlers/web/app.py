"""Builds the application: Connexion reads, routes and resolves the contract; our steps check each request against
it."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, field
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import BaseRoute, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from handlers.web import call
from handlers.web.addresses import Addresses, Network
from handlers.web.descriptions import specification
from handlers.web.documentation import documentation
from handlers.web.errors import Unavailable
from handlers.web.framework import (
    METHODS,
    AbstractOperation,
    ConnexionApi,
    ConnexionMiddleware,
    LifespanMiddleware,
    Resolver,
    ResponseValidationMiddleware,
)
from handlers.web.hosts import Hosts
from handlers.web.outermost import IsFailure, Outermost, UnknownPage
from handlers.web.request import Operation
from handlers.web.routing import Make, Operations, Routing
from handlers.web.steps.dispatch import dispatch
from handlers.web.steps.rate_limit import Limiter, limits
from handlers.web.steps.turns import Turns
from handlers.web.steps.validation import validation

CONTRACT_FILE = Path(__file__).resolve().parents[2] / "openapi.json"
BASE_PATH = "/api/v1"
COMPRESSED = re.compile(
    rf"{BASE_PATH}/(?:categories|cashflow/[^/]+/transactions|overview|subscriptions/details|transactions/(?:search|totals))\Z"
)
SHARED_PATHS = ("/api/", "/.well-known/")

Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]


class Api(Struct, frozen=True, kw_only=True):
    """One interface of the application, the main contract or a further one such as the OAuth endpoints: the bytes of
    its OpenAPI description, and the functions that serve it by operationId.

    `base_path` stands before all its paths. `failure_answer` answers failures under its paths in the words of its own
    protocol (`call.FailureAnswer`). `guard` replaces the main contract's guard. `same_paths` maps further spellings of
    its paths to the described ones.
    """

    description: bytes
    operations: Mapping[str, Operation]
    base_path: str = ""
    failure_answer: call.FailureAnswer = call.no_own_words
    guard: Make | None = None
    same_paths: Mapping[str, str] = field(default_factory=dict)


def create_app(
    *,
    contract: bytes,
    operations: Mapping[str, Operation],
    guard: Make,
    public_url: str,
    limiter: Limiter,
    is_failure: IsFailure,
    trusted_proxies: Sequence[str | Network] = (),
    hosts: Hosts | None = None,
    extra_apis: Sequence[Api] = (),
    routes: Sequence[BaseRoute] = (),
    shared_paths: Sequence[str] = (),
    lifespan: Lifespan | None = None,
    unknown_page: UnknownPage | None = None,
    unavailable: Mapping[type[Exception], type[Unavailable]] | None = None,
    validate_responses: bool = False,
    turns: Turns | None = None,
    person_of: Callable[[Scope], str | None] = lambda _scope: None,
) -> ASGIApp:
    """Build the ASGI application that serves the contract (the bytes of openapi.json), the `extra_apis` and the pages,
    without knowing anything of the store. Raises ValueError if descriptions and operations do not fit, or if an
    operation of the contract asks for no token.

    `guard` admits requests, unless their API has a guard of its own. `hosts` are the hosts that requests may name; None
    accepts any, which is for tests. `routes` are HTML pages and documents that are no operations. `shared_paths` are
    beginnings of paths, besides the contract's own, that scripts of other origins may read (oauth.md 2.11). `lifespan`
    is a context around all serving. `unknown_page` is shown to people who open an address that does not exist.
    `unavailable` are failures that pass, with their refusals (503), `is_failure` tells failures from orders to end.
    `validate_responses` also checks answers against the descriptions. `turns` is given where something else calls the
    operations too, so that both wait in the same line. `person_of` gives the person who asks in a browser session,
    and has one budget for all of theirs.
    """
    main = Api(description=contract, operations=operations, base_path=BASE_PATH)
    call_operation = partial(dispatch, public_path=urlsplit(public_url).path.rstrip("/"), turns=turns or Turns())
    pages = [*documentation(contract), *routes]
    application = _connexion(pages, extra_apis, lifespan, validate_responses=validate_responses)
    for api in _checked(main, extra_apis):
        # The order of checks is decision 29: 429, then 401, 403, 400, 404. Other APIs limit requests in their own way
        first = limits(limiter, person_of) if api is main else partial(_own_words, failure_answer=api.failure_answer)
        steps = [first, api.guard or guard, validation, call_operation]
        application.apis.append(_described(api, steps, validate_responses=validate_responses))
    _build(application)
    return Outermost(
        app=_compressed(application),
        addresses=Addresses(trusted_proxies),
        shared_paths=(*SHARED_PATHS, *shared_paths),
        hosts=hosts,
        unknown_page=unknown_page,
        unavailable=unavailable or {},
        is_failure=is_failure,
    )


def _connexion(
    pages: Sequence[BaseRoute], extra_apis: Sequence[Api], lifespan: Lifespan | None, *, validate_responses: bool
) -> ConnexionMiddleware:
    same_paths = {path: meant for api in extra_apis for path, meant in api.same_paths.items()}
    # Connexion's types ask for applications, but it accepts factories
    middlewares: list[Any] = [partial(Routing, pages=pages, same_paths=same_paths), LifespanMiddleware]
    if validate_responses:
        middlewares.insert(1, ResponseValidationMiddleware)
    return ConnexionMiddleware(
        Operations(Router(pages, redirect_slashes=False)),
        import_name="handlers",
        lifespan=lifespan,
        middlewares=middlewares,
    )


def _compressed(app: ASGIApp) -> ASGIApp:
    """The application, whose largest answers to the page are compressed for clients that read gzip; level 5 makes them
    seven times smaller in a millisecond."""
    compressed = GZipMiddleware(app, compresslevel=5)

    async def choose(scope: Scope, receive: Receive, send: Send) -> None:
        chosen = compressed if COMPRESSED.search(scope.get("path", "")) else app
        await chosen(scope, receive, send)

    return choose


def _described(api: Api, steps: Sequence[Any], *, validate_responses: bool) -> ConnexionApi:
    """What Connexion's `add_api` makes, which would copy and resolve the description for each application anew."""
    return ConnexionApi(
        specification(api.description),
        base_path=api.base_path,
        resolver=Resolver(api.operations.__getitem__),
        steps=steps,
        validate_responses=validate_responses,
    )


def _checked(main: Api, extra_apis: Sequence[Api]) -> Sequence[Api]:
    apis = [main, *extra_apis]
    _check_operations(apis)
    _check_security(main)
    return apis


def _check_operations(apis: Sequence[Api]) -> None:
    """Check that descriptions and code name the same operations, each of them once; raises ValueError."""
    seen: set[str] = set()
    for api in apis:
        described = {operation["operationId"] for operation in _operations_of(api)}
        if different := described ^ api.operations.keys():
            raise ValueError(f"operations of contract and code differ: {', '.join(sorted(different))}")
        if repeated := seen & described:
            # Connexion finds operations by id alone: one path would get another's scope
            raise ValueError(f"operationIds repeat: {', '.join(sorted(repeated))}")
        seen |= described


def _check_security(api: Api) -> None:
    """Check that every operation of the contract asks for a token, so that bank data are never served without one;
    raises ValueError."""
    unsecured = [operation["operationId"] for operation in _operations_of(api) if not operation.get("security")]
    if unsecured:
        raise ValueError(f"the contract asks for no token: {', '.join(unsecured)}")


def _operations_of(api: Api) -> list[Mapping[str, Any]]:
    paths = specification(api.description)["paths"].values()
    return [operation for path in paths for method, operation in path.items() if method in METHODS]


def _own_words(_operation: AbstractOperation, next_app: ASGIApp, *, failure_answer: call.FailureAnswer) -> ASGIApp:
    """The step that sets how failures of a request are answered: in the words of its API's own protocol, by
    `failure_answer` (RFC 6749 5.2)."""

    async def name_words(scope: Scope, receive: Receive, send: Send) -> None:
        call.current(scope).failure_answer = failure_answer
        await next_app(scope, receive, send)

    return name_words


def _build(application: ConnexionMiddleware) -> None:
    """Have Connexion build the application now, by a call that finds nothing and waits for nothing. Otherwise the first
    request would do it, and a contract that does not fit would fail that request instead of stopping the start."""

    async def nobody(*_: Any) -> Any:
        return {}

    with suppress(StopIteration):
        application({"type": "websocket", "path": "", "headers": []}, nobody, nobody).send(None)
