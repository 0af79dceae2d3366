"""The OAuth endpoints that programs call: operations of a description of their own, with errors as the RFCs write
them."""

import re
from collections.abc import Callable
from importlib import resources
from typing import Any

import orjson
from starlette.concurrency import run_in_threadpool

from auth import metadata
from auth.apps.client_metadata import registration_answer
from auth.errors import InvalidGrant, InvalidRequest, OAuthError, TemporarilyUnavailable
from auth.policy import Resource
from auth.principal import Principal
from auth.server import AuthorizationServer
from auth.tokens.refresh_tokens import TokenAnswer
from auth.tokens.token_request import REVOCATION_CHECKS, TOKEN_CHECKS, PostedForm, checked_fields
from handlers.oauth.forms import bearer
from handlers.web.app import Api
from handlers.web.errors import Refusal, TooManyRequests, Unavailable
from handlers.web.request import Answer, Operation, Request
from handlers.web.steps.guard import Authenticate
from handlers.web.steps.rate_limit import Limiter, Rate
from handlers.web.steps.turns import Turns
from storage.database import StoreUnavailable

BUDGET = Rate(requests=1200, seconds=60)  # of an address over what changes something, and over all pages (decision 32)
DOCUMENT_SECONDS = 300

Fields = dict[str, str]


def oauth_api(
    server: AuthorizationServer, *, limiter: Limiter, is_clock_off: Callable[[], bool] = lambda: False
) -> Api:
    """The description of the OAuth endpoints and discovery documents, with the functions that answer them; the
    endpoints lie under the path of `auth_url`. `is_clock_off` says whether this machine is known to have a wrong
    clock."""
    endpoints = Endpoints(server, is_clock_off)
    described = description(server.policy.served_path)
    spellings = {
        metadata.SERVER_PATH: metadata.server_metadata_paths(server.policy),
        metadata.RESOURCE_PATH: metadata.resource_metadata_paths(server.policy, "data"),
        f"{metadata.RESOURCE_PATH}/mcp": metadata.resource_metadata_paths(server.policy, "mcp"),
    }

    of_data = _document(lambda: metadata.resource_metadata(server.policy, "data"))

    def limit(function: Callable[[Request, Any], Answer]) -> Operation:
        async def answer(request: Request, body: Any) -> Answer:
            await limiter.spend("oauth", request.client_address, rate=BUDGET)
            return await run_in_threadpool(function, request, body)

        return answer

    return Api(
        description=orjson.dumps(described),
        operations={
            "registerClient": limit(endpoints.register),
            "issueToken": limit(endpoints.token),
            "revokeToken": limit(endpoints.revoke),
            "getKeys": _document(server.jwks),
            "getAuthorizationServer": _document(lambda: metadata.server_metadata(server.policy)),
            "getProtectedResource": of_data,
            "getDataInterface": of_data,
            "getAssistantInterface": _document(lambda: metadata.resource_metadata(server.policy, "mcp")),
        },
        failure_answer=failure_answer,
        same_paths={
            path: meant for meant, paths in spellings.items() for path in paths if path not in described["paths"]
        },
    )


def oauth_shared_paths(server: AuthorizationServer) -> tuple[str, ...]:
    """The paths of endpoints that scripts of other origins may call, which never include the pages (oauth.md 2.11; RFC
    9700 section 2.6)."""
    path = server.policy.served_path
    return tuple(f"{path}/oauth/{name}" for name in ("token", "register", "revoke", "jwks.json"))


def bearer_check(server: AuthorizationServer, resource: Resource = "data") -> Authenticate:
    """A coroutine function that gives the principal of an access token for this resource: from memory on the event
    loop, else from the store in a worker thread, once for all requests with this token that come meanwhile. It raises
    InvalidToken."""
    audience, turns = server.policy.address_of(resource), Turns(StoreUnavailable)

    async def authenticate(token: str) -> Principal:
        remembered = server.access.principal_in_memory(token, audience)
        if remembered is not None:
            return remembered
        async with turns.of(token):
            meanwhile = server.access.principal_in_memory(token, audience)
            if meanwhile is not None:
                return meanwhile
            return await run_in_threadpool(server.access.principal, token, audience)

    return authenticate


def description(path_before: str) -> dict[str, Any]:
    """The content of handlers/oauth/oauth-api.json, with its endpoints moved under `path_before`, the path of
    `auth_url`."""
    document: dict[str, Any] = orjson.loads((resources.files("handlers.oauth") / "oauth-api.json").read_bytes())
    document["paths"] = {
        (path_before + path if path.startswith("/oauth/") else path): item for path, item in document["paths"].items()
    }
    return document


class Endpoints:
    """The functions behind the operations of oauth-api.json that change something; failures are OAuthErrors."""

    def __init__(self, server: AuthorizationServer, is_clock_off: Callable[[], bool]) -> None:
        self._server = server
        self._is_clock_off = is_clock_off

    def register(self, request: Request, body: object) -> Answer:
        """Register a client (RFC 7591 section 3), and answer with its metadata."""
        token = bearer(request.headers)
        client = self._server.clients.register(body, address=request.client_address, bearer=token)
        return Answer(body=registration_answer(client), status=201, headers=_NOT_STORED)

    def token(self, request: Request, body: Fields) -> Answer:
        """Issue tokens for a code or a refresh token (RFC 6749 sections 4.1.3 and 6). What a wrong clock refuses is put
        off, since an app takes `invalid_grant` for the end of its access."""
        try:
            answer = self._tokens(self._sent_fields(request, body))
        except InvalidGrant:
            if self._is_clock_off():
                raise Unavailable from None
            raise
        if answer.refresh_token is None:  # the page's: its first request already spends the budget of its person
            self._server.access.principal(answer.access_token)
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

    def revoke(self, request: Request, body: Fields) -> Answer:
        """Revoke a token; the answer is empty, whether or not there was one: "The content of the response body is
        ignored by the client" RFC 7009 2.2."""
        fields = checked_fields(self._sent_fields(request, body), REVOCATION_CHECKS)
        self._server.grants.revoke_token(fields["token"], client_id=fields["client_id"])
        return Answer(body=b"", headers={**_NOT_STORED, "content-type": "text/plain; charset=utf-8"})

    def _tokens(self, sent: PostedForm) -> TokenAnswer:
        fields = checked_fields(sent, TOKEN_CHECKS)
        resource = sent.resource if "resource" in fields else None
        if fields["grant_type"] == "refresh_token":
            return self._server.refresh_tokens.refresh(
                fields["refresh_token"], client_id=fields["client_id"], scope=fields.get("scope"), resource=resource
            )
        return self._server.codes.redeem(
            fields["code"],
            client_id=fields["client_id"],
            redirect_uri=fields.get("redirect_uri"),
            verifier=fields.get("code_verifier"),
            resource=resource,
        )

    def _sent_fields(self, request: Request, body: Fields) -> PostedForm:
        fields = {name: value for name, value in body.items() if value}
        return PostedForm(
            fields=fields,
            has_query=bool(request.query),
            authorization_scheme=request.headers.get("authorization", "").partition(" ")[0].lower(),
            client=self._server.clients.find(fields.get("client_id", "")),
            resource=self._server.policy.named_resource(tuple(filter(None, [fields.get("resource")]))),
        )


CODES = {500: "server_error", 503: "temporarily_unavailable"}  # RFC 6749 section 4.1.2.1
_NOT_STORED = {"cache-control": "no-store", "pragma": "no-cache"}
_CACHED = {"cache-control": f"public, max-age={DOCUMENT_SECONDS}"}


def failure_answer(error: BaseException) -> Answer | None:
    """The answer to a failure of these endpoints as RFC 6749 section 5.2 writes errors, which is also an Error body of
    the interface; None for a failure that is neither an OAuthError nor a Refusal (`call.FailureAnswer`)."""
    if isinstance(error, TooManyRequests):
        error = TemporarilyUnavailable(error.retry_after)
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


def _document(content: Callable[[], Any]) -> Operation:
    return lambda _request: Answer(body=content(), headers=_CACHED)
