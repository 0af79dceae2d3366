"""The operator's decisions about the authorization server: addresses, registration, grace."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal
from urllib.parse import urlsplit

Registration = Literal["open", "token", "off"]
Resource = Literal["data", "mcp", "simplefin"]
"""A resource of this service: the data interface, the one for assistants, or the one of SimpleFIN. Each grant opens
one."""

PATHS: Mapping[Resource, str] = {"data": "/api/v1", "mcp": "/mcp", "simplefin": "/simplefin"}
RESOURCES: tuple[Resource, ...] = ("data", "mcp")  # the resources that OAuth clients can ask for
_NUMBERS = re.compile(r":|(?:^|\.)[0-9]+\.?$")  # an IPv6 address, or a name that ends like an IPv4 address


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The addresses and limits of the authorization server; what has no default here is set, and checked, in
    handlers/settings.py. The addresses have no slash at their end.

    No address is ever derived from a request (oauth.md 2.2).
    """

    public_url: str
    auth_url: str
    registration: Registration
    registration_limit: tuple[int, timedelta]  # so many unused clients of one network address, in which period
    refresh_reuse_seconds: timedelta  # oauth.md 2.6
    shows_addresses: bool  # in the log, for fail2ban
    writing_clients: frozenset[str] = frozenset()  # ids of apps that may be allowed to change something
    document_hosts: frozenset[str] | None = frozenset()  # hosts whose client documents are fetched; None: all

    @property
    def issuer(self) -> str:
        """The issuer identifier (RFC 8414 section 2), which is `auth_url`."""
        return self.auth_url

    @property
    def provider_redirect_uri(self) -> str:
        """Where the household's provider sends browsers back to."""
        return f"{self.auth_url}/oauth/oidc/callback"

    def address_of(self, resource: Resource) -> str:
        """The identifier of a resource in RFC 8707 and 9728: the audience of its tokens, and exactly the address below
        which it is served."""
        return self.public_url + PATHS[resource]

    def named_resource(self, values: tuple[str, ...]) -> Resource | None:
        """The resource that all of these indicators (RFC 8707) name, a slash at their end aside; without any, the data
        interface. None where one of them is not for OAuth clients here, or they name several: a token has one
        audience."""
        named = {value.removesuffix("/") for value in values} or {self.address_of("data")}
        return next((each for each in RESOURCES if named == {self.address_of(each)}), None)

    @property
    def origin(self) -> str:
        """The origin of the pages, as browsers send it in the header Origin."""
        return origin_of(self.auth_url)

    @property
    def auth_path(self) -> str:
        """The path of `auth_url`, which stands before /oauth in addresses; without a trailing slash, usually empty."""
        return urlsplit(self.auth_url).path

    @property
    def served_path(self) -> str:
        """The path before /oauth in requests as they arrive: a proxy that serves under the path of `public_url` removes
        that path, as it does for /api/v1."""
        if self.auth_url == self.public_url or self.auth_url.startswith(self.public_url + "/"):
            return self.auth_url.removeprefix(self.public_url)
        return self.auth_path

    @property
    def is_https(self) -> bool:
        """Whether browsers reach the pages over TLS."""
        return self.auth_url.startswith("https://")

    @property
    def passkey_host(self) -> str | None:
        """The host for which passkeys are made (the RP ID of WebAuthn); None where browsers make none: an IP address is
        no domain, and without TLS browsers trust only localhost."""
        host = urlsplit(self.auth_url).hostname or ""
        is_domain = not _NUMBERS.search(host)
        is_trusted = self.is_https or host == "localhost" or host.endswith(".localhost")
        return host if is_domain and is_trusted else None

    @property
    def takes_documents(self) -> bool:
        """Whether there are apps that may describe themselves by a document, in place of a registration."""
        return self.document_hosts is None or bool(self.document_hosts)

    def takes_document_of(self, host: str) -> bool:
        """Whether the operator lets this server fetch apps' documents from this host."""
        return self.document_hosts is None or host in self.document_hosts


def origin_of(address: str) -> str:
    """The origin of an address as browsers write it: in lower case, without a port that its scheme implies."""
    parts = urlsplit(address.lower())
    implied = {"http": ":80", "https": ":443"}.get(parts.scheme, "")
    return f"{parts.scheme}://{parts.netloc.removesuffix(implied)}"
