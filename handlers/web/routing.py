"""Finds the operation of the contract that a request means, and builds the steps it passes once per operation."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from re import Pattern
from types import MappingProxyType
from typing import Any

from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Mount, Route, Router, compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from handlers.web.errors import MethodNotAllowed
from handlers.web.framework import (
    METHODS,
    ROUTING_CONTEXT,
    AbstractOperation,
    RoutedAPI,
    RoutedMiddleware,
    RoutingMiddleware,
    Specification,
)

OperationPath = dict[str, str]
"""What Connexion's router puts into the scope for an operation: its API's base path and its id."""

Make = Callable[[AbstractOperation, ASGIApp], ASGIApp]
"""Wraps the next step of an operation in a step; returns the next step itself where there is nothing to do."""


class Routing(RoutingMiddleware):
    """Connexion's router, preceded by a faster lookup of our own, and without redirects from or to a trailing slash
    (they repeat the Host header). A known path with another method is a MethodNotAllowed."""

    def __init__(
        self, app: ASGIApp, *, pages: Sequence[BaseRoute], same_paths: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """`pages` are the routes beside the contract, which the inner application serves; `same_paths` maps other
        spellings of paths to the described ones."""
        super().__init__(app)
        self._same_paths = same_paths
        self._pages = pages
        self._literal: dict[tuple[str, str], OperationPath] = {}
        self._templates: dict[
            tuple[str, int], list[tuple[Pattern[str], OperationPath]]
        ] = {}  # by method and number of slashes
        self._allowed: dict[str, set[str]] = {}  # by path without parameters

    def add_api(self, specification: Specification, *positional: Any, **named: Any) -> None:
        super().add_api(specification, *positional, **named)
        self.router.redirect_slashes = False
        for route in self.router.routes:
            assert isinstance(route, Mount)
            assert isinstance(route.app, Router)
            route.app.redirect_slashes = False
        base_path = specification.base_path
        for path, methods in specification["paths"].items():
            for method in METHODS & methods.keys():
                found = {"api_base_path": base_path, "operation_id": methods[method]["operationId"]}
                for name in ("GET", "HEAD") if method == "get" else (method.upper(),):
                    self._add_path(name, base_path, path, found)

    def _add_path(self, method: str, base_path: str, path: str, found: OperationPath) -> None:
        """Register a path of the contract for direct lookup: searching all routes costs a third of a request."""
        whole = base_path + path
        if "{" in path:
            self._templates.setdefault((method, whole.count("/")), []).append((compile_path(whole)[0], found))
            return
        self._literal[method, whole] = found
        if base_path:  # without a base path, a page may have the same path
            self._allowed.setdefault(whole, set()).add(method)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        found = self._find(scope)
        if found is not None:
            scope["path_params"], scope.setdefault("extensions", {})[ROUTING_CONTEXT] = found
            await self.app(scope, receive, send)
            return
        if scope["path"] in self._allowed and not scope.get("root_path"):
            # "concrete (non-templated) paths would be matched before their templated counterparts", OpenAPI 3.0.3
            raise MethodNotAllowed(frozenset(self._allowed[scope["path"]]))
        if scope["path"] in self._same_paths:
            await self({**scope, "path": self._same_paths[scope["path"]]}, receive, send)
            return
        # A copy, because the search changes the scope
        asked = {key: scope.get(key, "") for key in ("type", "method", "path", "root_path")}
        try:
            await super().__call__(scope, receive, send)
        except HTTPException as error:
            # Of several descriptions without a base path the first one answers 404 for the paths of all others
            allowed = allowed_methods([*self.router.routes, *self._pages], asked)
            if error.status_code not in (404, 405) or not allowed or scope["method"] in allowed:
                raise
            raise MethodNotAllowed(frozenset(allowed)) from None

    def _find(self, scope: Scope) -> tuple[dict[str, str], OperationPath] | None:
        """The path parameters of a request and its operation; None where no description has its path and method, and
        for a request under a root path, which Connexion's router looks up."""
        method, path = scope["method"], scope["path"]
        if scope.get("root_path"):
            return None
        literal = self._literal.get((method, path))
        if literal is not None:
            return {}, literal
        if path in self._allowed:
            return None  # the path exists, for other methods
        for template, found in self._templates.get((method, path.count("/")), ()):
            match = template.match(path)
            if match is not None:
                return match.groupdict(), found
        return None


def allowed_methods(routes: Iterable[BaseRoute], scope: Scope) -> set[str]:
    """The methods of all routes that match the path of a scope, whatever its method, also of routes inside mounts;
    Starlette itself names only those of the first one."""
    allowed: set[str] = set()
    for route in routes:
        match, child = route.matches(scope)
        if isinstance(route, Route) and match is not Match.NONE:
            allowed |= route.methods or set()
        elif isinstance(route, Mount) and match is Match.FULL:
            allowed |= allowed_methods(route.routes, {**scope, **child})
    return allowed


class OperationsOfApi(RoutedAPI[ASGIApp]):
    """Builds the chains of steps for the operations of one description, the first of `steps` outermost."""

    def __init__(self, specification: Specification, *, steps: Sequence[Make], **arguments: Any) -> None:
        super().__init__(specification, **arguments)
        self._steps = steps
        self.add_paths()

    def make_operation(self, operation: AbstractOperation) -> ASGIApp:
        chain = self.next_app
        for make in reversed(self._steps):
            chain = make(operation, chain)
        return chain


class Operations(RoutedMiddleware[OperationsOfApi]):
    """Sends a request through the steps of its operation, a chain built once; every other request goes to the inner
    routes."""

    api_cls = OperationsOfApi
