"""The two discovery documents: authorization server (RFC 8414) and protected resource (RFC 9728)."""

from typing import Any
from urllib.parse import urlsplit

from auth import authorization_details
from auth.policy import RESOURCES, Policy, Resource
from auth.scopes import SCOPES

SERVER_PATH = "/.well-known/oauth-authorization-server"
RESOURCE_PATH = "/.well-known/oauth-protected-resource"
RESOURCE_NAMES: dict[Resource, str] = {
    "data": "Banking Data Service",
    "mcp": "Banking Data Service for assistants",
}


def server_metadata(policy: Policy) -> dict[str, Any]:
    """The metadata of the authorization server for clients (RFC 8414); every address in it is served, that of
    registration is left out where registration is off."""
    issuer = policy.issuer
    document: dict[str, Any] = {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/oauth/authorize",
        "token_endpoint": f"{issuer}/oauth/token",
        "registration_endpoint": f"{issuer}/oauth/register",
        "revocation_endpoint": f"{issuer}/oauth/revoke",
        "jwks_uri": f"{issuer}/oauth/jwks.json",
        "scopes_supported": list(SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "authorization_details_types_supported": [authorization_details.TYPE],
        "service_documentation": f"{policy.public_url}/docs",
        "protected_resources": list(map(policy.address_of, RESOURCES)),
    }
    if policy.takes_documents:
        document["client_id_metadata_document_supported"] = True
    if policy.registration == "off":
        del document["registration_endpoint"]
    return document


def resource_metadata(policy: Policy, resource: Resource) -> dict[str, Any]:
    """The metadata of a resource for clients (RFC 9728); the member `resource` is exactly its address."""
    return {
        "resource": policy.address_of(resource),
        "authorization_servers": [policy.issuer],
        "scopes_supported": list(SCOPES),
        "bearer_methods_supported": ["header"],
        "resource_name": RESOURCE_NAMES[resource],
        "resource_documentation": f"{policy.public_url}/docs",
    }


def server_metadata_paths(policy: Policy) -> tuple[str, ...]:
    """The paths at which the server's metadata are served: at the origin's root (interface 5.3), and for an issuer with
    a path also at the address made by "inserting a well-known URI string ... between the host component and the path
    component" (RFC 8414 section 3)."""
    inserted = SERVER_PATH + urlsplit(policy.issuer).path
    return tuple(dict.fromkeys((SERVER_PATH, inserted)))


def resource_metadata_paths(policy: Policy, resource: Resource) -> tuple[str, ...]:
    """The paths at which a resource's metadata are served: the well-known path with the resource's own path appended
    (RFC 9728 section 3.1), and before it, for the data interface only, the well-known path alone (interface 5.3)."""
    inserted = RESOURCE_PATH + urlsplit(policy.address_of(resource)).path
    return tuple(dict.fromkeys((RESOURCE_PATH, inserted))) if resource == "data" else (inserted,)
