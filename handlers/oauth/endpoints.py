"""The OAuth endpoints that programs call: operations of a description of their own, with errors as the RFCs write
them."""

import re
from collections.abc import Callable
from importlib import resources
from typing import Any

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from auth import metadata
from auth.apps.client_metadata import registration_answer
from auth.errors import InvalidRequest, OAuthError, TemporarilyUnavailable
from auth.policy import Resource
from auth.principal import Principal
from auth.server import AuthorizationServer
from auth.tokens.refresh_tokens import TokenAnswer
from auth.tokens.token_request import REVOCATION_CHECKS, TOKEN_CHECKS, Sent, checked_fields
from handlers.http.app import Api
from handlers.http.errors import Refusal
from handlers.http.request import Answer, Request
from handlers.http.steps.guard import Authenticate
from handlers.http.steps.rate_limit import Limiter, Rate
from handlers.http.steps.turns import Turns
from handlers.oauth.sign_in import page_routes
from handlers.oauth.site import Site
from storage.database import StoreUnavailable
from storage.oauth.clients import Client

BUDGET = Rate(requests=1200, seconds=60)  # of one address over all of these endpoints (decision 32)
DOCUMENT_SECONDS = 300

Fields = dict[str, str]


def oauth_api(server: AuthorizationServer, *, limiter: Limiter, rate: Rate | None = BUDGET) -> Api:
    """The description of the OAuth endpoints, with its operations; the endpoints follow the path of `auth_url`."""
    endpoints = Endpoints(server, limiter, rate)
    return Api(
        description=description(server.policy.served_path),
        operations={
            "registerClient": endpoints.register,
            "issueToken": endpoints.token,
            "revokeToken": endpoints.revoke,
            "getKeys": endpoints.keys,
            "getAuthorizationServer": endpoints.server_metadata,
            "getProtectedResource": endpoints.resource_metadata,
            "getDataInterface": endpoints.resource_metadata,
            "getAssistantInterface": endpoints.mcp_metadata,
        },
        failure_answer=failure_answer,
    )


def oauth_routes(site: Site) -> list[BaseRoute]:
    """The routes of the pages for people, and of the discovery documents whose addresses depend on the settings."""
    server = site.server
    described = description(server.policy.served_path)["paths"]
    documents: list[tuple[tuple[str, ...], Callable[[], object]]] = [
        (metadata.server_metadata_paths(server.policy), server.server_metadata),
        (metadata.resource_metadata_paths(server.policy), server.resource_metadata),
        (metadata.mcp_metadata_paths(server.policy), lambda: server.resource_metadata("mcp")),
    ]
    routes = [
        Route(path, _document(content), methods=["GET"])
        for paths, content in documents
        for path in paths
        if path not in described
    ]
    return [*routes, *page_routes(site)]


def oauth_shared_paths(server: AuthorizationServer) -> tuple[str, ...]:
    """The paths that scripts of other origins may call, which never include the pages (oauth.md 2.11; RFC 9700 section
    2.6)."""
    path = server.policy.served_path
    return tuple(f"{path}/oauth/{name}" for name in ("token", "register", "revoke", "jwks.json"))


def bearer_check(server: AuthorizationServer, resource: Resource = "data") -> Authenticate:
    """A coroutine function that gives the principal of an access token for this resource: from memory on the event
    loop, else from the store in a worker thread, once for all requests of a token that come meanwhile."""
    audience, turns = server.policy.address_of(resource), Turns(StoreUnavailable)

    async def authenticate(token: str) -> Principal:
        remembered = server.access.remembered(token, audience)
        if remembered is not None:
            return remembered
        async with turns.of(token):
            meanwhile = server.access.remembered(token, audience)
            if meanwhile is not None:
                return meanwhile
            return await run_in_threadpool(server.access.principal, token, audience)

    return authenticate


def description(path_before: str) -> dict[str, Any]:
    """The content of handlers/oauth/oauth-api.json, with its endpoints moved under the path of `auth_url`."""
    document: dict[str, Any] = orjson.loads((resources.files("handlers.oauth") / "oauth-api.json").read_bytes())
    document["paths"] = {
        (path_before + path if path.startswith("/oauth/") else path): item for path, item in document["paths"].items()
    }
    return document


class Endpoints:
    """The functions behind the operationIds of oauth-api.json."""

    def __init__(self, server: AuthorizationServer, limiter: Limiter, rate: Rate | None) -> None:
        self._server = server
        self._limiter = limiter
        self._rate = rate

    async def register(self, request: Request, body: object) -> Answer:
        """Register a client (RFC 7591 section 3)."""
        await self._count(request)
        scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
        bearer = credentials.strip() if scheme.lower() == "bearer" else None
        client = await run_in_threadpool(self._register, body, request.client_address, bearer)
        return Answer(body=registration_answer(client), status=201, headers=_NOT_STORED)

    async def token(self, request: Request, body: Fields) -> Answer:
        """Issue tokens for a code or a refresh token (RFC 6749 sections 4.1.3 and 6)."""
        await self._count(request)
        answer = await run_in_threadpool(self._tokens, request, body)
        details = answer.authorization_details
        return Answer(
            body={
                "access_token": answer.access_token,
                "token_type": "Bearer",
                "expires_in": answer.expires_in,
                **({"refresh_token": answer.refresh_token} if answer.refresh_token is not None else {}),
                "scope": answer.scope,
                **({"authorization_details": details} if details is not None else {}),
            },
            headers=_NOT_STORED,
        )

    async def revoke(self, request: Request, body: Fields) -> Answer:
        """Revoke a token; the answer is empty: "The content of the response body is ignored by the client" RFC 7009
        2.2."""
        await self._count(request)
        await run_in_threadpool(self._revoke, request, body)
        return Answer(body=b"", headers={**_NOT_STORED, "content-type": "text/plain; charset=utf-8"})

    async def keys(self, _request: Request) -> Answer:
        """The public keys that verify access tokens (RFC 7517 section 5)."""
        return Answer(body=await run_in_threadpool(self._server.jwks), headers=_CACHED)

    async def server_metadata(self, _request: Request) -> Answer:
        """The metadata of the authorization server (RFC 8414 section 3.2)."""
        return Answer(body=self._server.server_metadata(), headers=_CACHED)

    async def resource_metadata(self, _request: Request) -> Answer:
        """The metadata of the data interface as a protected resource (RFC 9728 section 3.2)."""
        return Answer(body=self._server.resource_metadata(), headers=_CACHED)

    async def mcp_metadata(self, _request: Request) -> Answer:
        """The metadata of the interface for assistants as a protected resource (RFC 9728 section 3.2)."""
        return Answer(body=self._server.resource_metadata("mcp"), headers=_CACHED)

    async def _count(self, request: Request) -> None:
        if self._rate is not None:
            quota = await self._limiter.take("oauth", self._rate, request.client_address)
            if not quota.is_granted:
                raise TemporarilyUnavailable(quota.reset_seconds)

    def _register(self, document: object, address: str, bearer: str | None) -> Client:
        return self._server.clients.register(document, address=address, bearer=bearer)

    def _tokens(self, request: Request, body: Fields) -> TokenAnswer:
        sent = self._sent_fields(request, body)
        fields = checked_fields(sent, TOKEN_CHECKS)
        if fields["grant_type"] == "refresh_token":
            return self._server.refresh_tokens.refresh(
                fields["refresh_token"],
                client_id=fields["client_id"],
                scope=fields.get("scope"),
                resource=sent.resource if "resource" in fields else None,
            )
        return self._server.codes.redeem(
            fields["code"],
            client_id=fields["client_id"],
            redirect_uri=fields.get("redirect_uri"),
            verifier=fields.get("code_verifier"),
            resource=sent.resource if "resource" in fields else None,
        )

    def _revoke(self, request: Request, body: Fields) -> None:
        fields = checked_fields(self._sent_fields(request, body), REVOCATION_CHECKS)
        self._server.grants.revoke_token(fields["token"], client_id=fields["client_id"])

    def _sent_fields(self, request: Request, body: Fields) -> Sent:
        fields = {name: value for name, value in body.items() if value}
        return Sent(
            fields=fields,
            has_query=bool(request.query),
            authorization_scheme=request.headers.get("authorization", "").partition(" ")[0].lower(),
            client=self._server.clients.find(fields.get("client_id", "")),
            resource=self._server.policy.named_resource(tuple(filter(None, [fields.get("resource")]))),
        )


CODES = {500: "server_error", 503: "temporarily_unavailable"}  # RFC 6749 section 4.1.2.1
_NOT_STORED = {"cache-control": "no-store", "pragma": "no-cache"}
_CACHED = {"cache-control": f"public, max-age={DOCUMENT_SECONDS}"}


def failure_answer(error: Exception) -> Answer | None:
    """The failure as RFC 6749 section 5.2 writes errors, which is also an Error body of the interface
    (`call.FailureAnswer`)."""
    if isinstance(error, OAuthError):
        return _error_answer(error.status, error.code, error.description, error.headers)
    if isinstance(error, Refusal):
        return _error_answer(error.status, CODES.get(error.status, InvalidRequest.code), str(error), error.headers)
    return None


def _error_answer(status: int, code: str, description: str, headers: dict[str, str]) -> Answer:
    body = {"error": code, "error_description": _without_forbidden_characters(description)}
    return Answer(body=body, status=status, headers={**_NOT_STORED, **headers})


def _without_forbidden_characters(text: str) -> str:
    """The text without the characters that an error description may not contain: "Values for the 'error_description'
    parameter MUST NOT include characters outside the set %x20-21 / %x23-5B / %x5D-7E." RFC 6749 section 5.2"""
    return re.sub(r"[^\x20-\x21\x23-\x5b\x5d-\x7e]", "", text.replace('"', "'"))


def _document(content: Callable[[], object]) -> Callable[[Any], Any]:
    async def answer(_request: Any) -> Response:
        return Response(orjson.dumps(content()), headers=_CACHED, media_type="application/json")

    return answer
