"""Builds the application: Connexion reads, routes and resolves the contract; our steps check each request against
it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import orjson
from connexion import ConnexionMiddleware
from connexion.http_facts import METHODS
from connexion.middleware.lifespan import LifespanMiddleware
from connexion.middleware.response_validation import ResponseValidationMiddleware
from connexion.operations import AbstractOperation
from connexion.resolver import Resolver
from connexion.spec import OpenAPISpecification
from starlette.routing import BaseRoute, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from handlers.http import call
from handlers.http.addresses import Addresses, Network
from handlers.http.documentation import documentation
from handlers.http.hosts import Hosts
from handlers.http.outermost import Outermost, UnknownPage
from handlers.http.request import Operation
from handlers.http.routing import Make, Operations, Routing
from handlers.http.steps.dispatch import dispatch
from handlers.http.steps.guard import Authenticate, guard
from handlers.http.steps.rate_limit import Limiter, Rate, limits
from handlers.http.steps.turns import Turns
from handlers.http.steps.validation import validation

CONTRACT_FILE = Path(__file__).resolve().parents[2] / "openapi.json"
BASE_PATH = "/api/v1"
SHARED_PATHS = ("/api/", "/.well-known/")
DEFAULT_RATE = Rate(requests=60, seconds=60)  # interface section 8

Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]

# The tests check descriptions against OpenAPI's schema; at each start that took a sixth of the time (decision 133)
OpenAPISpecification.openapi_schema = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """A description besides the main contract, such as the OAuth endpoints, with its own operations.

    `failure_answer` answers failures under its paths in the words of its own protocol (`call.FailureAnswer`). `guard`
    replaces the main contract's guard. `same_paths` maps further spellings of its paths to the described ones.
    """

    description: Mapping[str, Any]
    operations: Mapping[str, Operation]
    base_path: str = ""
    failure_answer: call.FailureAnswer = call.no_own_words
    guard: Make | None = None
    same_paths: Mapping[str, str] = field(default_factory=dict)


def create_app(
    *,
    contract: bytes,
    operations: Mapping[str, Operation],
    authenticate: Authenticate,
    public_url: str,
    billing_url: str,
    limiter: Limiter,
    rate: Rate | None = DEFAULT_RATE,
    trusted_proxies: Sequence[str | Network] = (),
    hosts: Hosts | None = None,
    extra_apis: Sequence[Api] = (),
    routes: Sequence[BaseRoute] = (),
    shared_paths: Sequence[str] = (),
    lifespan: Lifespan | None = None,
    unknown_page: UnknownPage | None = None,
    unavailable: tuple[type[Exception], ...] = (),
    validate_responses: bool = False,
    turns: Turns | None = None,
    shows_bookings: Collection[str] = (),
    knows_coverage: Collection[str] | None = None,
    gives_figures: Mapping[str, str] = MappingProxyType({}),
) -> ASGIApp:
    """The whole HTTP loop over the bytes of openapi.json; it knows nothing of the store.

    `hosts` are the hosts that requests may name; None accepts any, which is for tests. `rate` None switches the limit
    off. `routes` are HTML pages and documents that are no operations. `shared_paths` are beginnings of paths, besides
    the contract's own, that scripts of other origins may read (oauth.md 2.11). `unknown_page` is shown to people who
    open an address that does not exist. `unavailable` are failures that pass and are answered with 503. `turns` is
    given where something else calls the operations too, so that both wait in the same line. `shows_bookings`,
    `knows_coverage`, `gives_figures`: see `guard`.
    """
    main = Api(description=orjson.loads(contract), operations=operations, base_path=BASE_PATH)
    apis = [main, *extra_apis]
    _check_operations(apis)
    _check_security(main)
    by_id = {name: function for api in apis for name, function in api.operations.items()}

    pages = [*documentation(contract), *routes]
    # The order of checks is decision 29: 429, then 401, 403, 400, 404
    steps: list[Make] = [
        _own_words(apis),
        _for_main_contract(operations, limits(limiter, rate)),
        _guards(
            extra_apis,
            guard(
                authenticate,
                public_url=public_url,
                billing_url=billing_url,
                shows_bookings=shows_bookings,
                knows_coverage=knows_coverage,
                gives_figures=gives_figures,
            ),
        ),
        validation,
        partial(dispatch, public_path=urlsplit(public_url).path.rstrip("/"), turns=turns or Turns()),
    ]
    same_paths = {path: meant for api in extra_apis for path, meant in api.same_paths.items()}
    # Connexion's types ask for applications, but it accepts factories
    middlewares: list[Any] = [partial(Routing, pages=pages, same_paths=same_paths), LifespanMiddleware]
    if validate_responses:
        middlewares.insert(1, ResponseValidationMiddleware)
    application = ConnexionMiddleware(
        Operations(Router(pages, redirect_slashes=False), steps=steps),
        import_name="handlers",
        lifespan=lifespan,
        middlewares=middlewares,
        resolver=Resolver(by_id.__getitem__),
        validate_responses=validate_responses,
    )
    for api in apis:
        application.add_api(dict(api.description), base_path=api.base_path)
    # Else Connexion would do this at the first request: a contract that does not fit must stop the start
    application.app, application.middleware_stack = application._build_middleware_stack()
    return Outermost(
        application,
        addresses=Addresses(trusted_proxies),
        shared_paths=(*SHARED_PATHS, *shared_paths),
        hosts=hosts,
        unknown_page=unknown_page,
        unavailable=unavailable,
    )


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
    paths = api.description["paths"].values()
    return [operation for path in paths for method, operation in path.items() if method in METHODS]


def _for_main_contract(operations: Mapping[str, Operation], make: Make) -> Make:
    """The step `make`, for operations of the main contract alone; other APIs limit requests in their own way."""

    def make_step(operation: AbstractOperation, next_app: ASGIApp) -> ASGIApp:
        return make(operation, next_app) if operation.operation_id in operations else next_app

    return make_step


def _guards(apis: Sequence[Api], usual: Make) -> Make:
    """The guard of each operation: its API's own if it has one, else the usual one."""
    own = {name: api.guard for api in apis if api.guard is not None for name in api.operations}
    return lambda operation, next_app: own.get(operation.operation_id, usual)(operation, next_app)


def _own_words(apis: Sequence[Api]) -> Make:
    """A step that lets each API answer failures in the words of its own protocol (RFC 6749 5.2)."""
    own = {name: api.failure_answer for api in apis[1:] for name in api.operations}

    def make_step(operation: AbstractOperation, next_app: ASGIApp) -> ASGIApp:
        failure_answer = own.get(operation.operation_id)
        if failure_answer is None:
            return next_app

        async def name_words(scope: Scope, receive: Receive, send: Send) -> None:
            call.current(scope).failure_answer = failure_answer
            await next_app(scope, receive, send)

        return name_words

    return make_step
