"""Which operation of the contract a request means, and the layers that are prepared once per operation."""

from collections.abc import Callable, Iterable
from typing import Any

from connexion.middleware.abstract import RoutedAPI, RoutedMiddleware
from connexion.middleware.routing import RoutingMiddleware
from connexion.operations import AbstractOperation
from connexion.spec import Specification
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Mount, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from handlers.errors import MethodNotAllowed

Make = Callable[[AbstractOperation, ASGIApp], ASGIApp]
"""What a layer puts in front of the next one for an operation; the next one itself where it has nothing to do."""


class Routing(RoutingMiddleware):
    """Connexion's router, without its redirects of trailing slashes (they repeat the Host header)."""

    def add_api(self, specification: Specification, *positional: Any, **named: Any) -> None:
        super().add_api(specification, *positional, **named)
        self.router.redirect_slashes = False
        for route in self.router.routes:
            if isinstance(route, Mount) and isinstance(route.app, Router):
                route.app.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = dict(scope) if scope["type"] == "http" and scope["method"] not in ("GET", "POST") else scope
        path, root_path = scope.get("path", ""), scope.get("root_path", "")
        try:
            await super().__call__(scope, receive, send)
        except HTTPException as error:
            if error.status_code != 405:
                raise
            plain = {"type": "http", "method": asked["method"], "path": path, "root_path": root_path}
            named = (error.headers or {}).get("Allow", "")
            allowed = allowed_methods(self.router.routes, plain) | {name for name in named.split(", ") if name}
            raise MethodNotAllowed(frozenset(allowed)) from None


def allowed_methods(routes: Iterable[BaseRoute], scope: Scope) -> set[str]:
    """The methods of every route of a path: Starlette alone names those of the first one."""
    allowed: set[str] = set()
    for route in routes:
        match, child = route.matches(scope)
        if isinstance(route, Route) and match is not Match.NONE:
            allowed |= route.methods or set()
        elif isinstance(route, Mount) and match is Match.FULL:
            allowed |= allowed_methods(route.routes, {**scope, **child})
    return allowed


class Layer(RoutedMiddleware["LayerAPI"]):
    """A Connexion middleware that is made of one application per operation, built when the contract is read."""

    def __init__(self, app: ASGIApp, *, make: Make) -> None:
        super().__init__(app)
        self._make = make

    def add_api(self, specification: Specification, **arguments: Any) -> "LayerAPI":
        api = LayerAPI(specification, next_app=self.app, make=self._make, **arguments)
        self.apis[api.base_path].append(api)
        return api


class LayerAPI(RoutedAPI[ASGIApp]):
    """The applications of one layer for the operations of one description."""

    def __init__(self, specification: Specification, *, next_app: ASGIApp, make: Make, **arguments: Any) -> None:
        super().__init__(specification, next_app=next_app, **arguments)
        self._make = make
        self.add_paths()

    def make_operation(self, operation: AbstractOperation) -> ASGIApp:
        return self._make(operation, self.next_app)
