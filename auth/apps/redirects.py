"""Redirect URIs: which may be registered, which of them a request matches, and what a person should know of them."""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, quote, urlencode

LENGTH_MAX = 2000
LOOPBACK_HOSTS = ("127.0.0.1", "[::1]", "localhost")

# "At a minimum, any private-use URI scheme that doesn't contain a period character ('.') SHOULD be rejected."
# RFC 8252 section 8.4. These apps are too common to be turned away:
KNOWN_APP_SCHEMES = frozenset({"claude", "cursor", "vscode", "vscode-insiders", "windsurf", "zed"})

_CHARACTERS = re.compile(r"[A-Za-z0-9\-._~:/?\[\]@!$&'()+,;=%]+", re.ASCII)  # RFC 3986 without # and *
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):(.*)", re.ASCII)
_WEB = re.compile(r"https?://([^/?]*)(.*)", re.ASCII | re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.\-_]+)(?::([0-9]{1,5}))?", re.ASCII)
_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_\-]{0,61}[A-Za-z0-9_])?", re.ASCII)
_LOOPBACK = re.compile(r"http://(127\.0\.0\.1|\[::1\]|localhost)(?::([0-9]{1,5}))?([/?].*)?", re.ASCII)
_OURS = frozenset({"code", "state", "iss", "error", "error_description", "error_uri"})


def fault(uri: str) -> str | None:
    """Why a redirect URI cannot be registered, in one sentence; None when it can."""
    if not uri:
        return "A redirect URI is empty."
    if len(uri) > LENGTH_MAX:
        return f"A redirect URI is longer than {LENGTH_MAX} characters."
    if "#" in uri:
        # "The endpoint URI MUST NOT include a fragment component." RFC 6749 section 3.1.2
        return "A redirect URI has a fragment."
    if not _CHARACTERS.fullmatch(uri) or _BAD_ESCAPE.search(uri):
        return "A redirect URI has characters that do not belong in a URI."
    match = _SCHEME.fullmatch(uri)
    if not match:
        # "The redirection endpoint URI MUST be an absolute URI." RFC 6749 section 3.1.2
        return "A redirect URI is not absolute."
    scheme, rest = match[1].lower(), match[2]
    if any(name in _OURS for name, _ in parse_qsl(uri.partition("?")[2], keep_blank_values=True)):
        return "A redirect URI has a query parameter that the response itself uses."
    if scheme in ("http", "https"):
        return _web_fault(uri, scheme)
    if "." not in scheme and scheme not in KNOWN_APP_SCHEMES:
        return "A redirect URI must use https, http on a loopback address, or an app scheme such as com.example.app:/."
    if "@" in rest.split("?")[0] or len(rest) < 2 or not rest.startswith("/"):
        return "A redirect URI with an app scheme must look like com.example.app:/path."
    return None


def _web_fault(uri: str, scheme: str) -> str | None:
    match = _WEB.fullmatch(uri)
    authority = _AUTHORITY.fullmatch(match[1]) if match else None
    if not authority:
        return "A redirect URI has no usable host."
    host, port = authority[1], authority[2]
    if port is not None and not 1 <= int(port) <= 65535:
        return "A redirect URI has an impossible port."
    if not _is_host(host):
        return "A redirect URI has no usable host."
    if scheme == "http" and host.lower() not in LOOPBACK_HOSTS:
        # "Authorization responses MUST NOT be transmitted over unencrypted network connections. To this end,
        # authorization servers MUST NOT allow redirection URIs that use the http scheme except for native clients that
        # use loopback interface redirection" RFC 9700 section 2.6
        return "A redirect URI with http must point to 127.0.0.1, [::1] or localhost; use https."
    return None


def _is_host(host: str) -> bool:
    if host.startswith("["):
        try:
            ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            return False
        return True
    labels = host.removesuffix(".").split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        return False
    if labels[-1].isdigit() or labels[-1].lower().startswith("0x"):
        try:
            ipaddress.IPv4Address(host)  # four plain decimal parts, none of the other spellings
        except ValueError:
            return False
    return True


def is_registered(uri: str, registered: Iterable[str]) -> bool:
    """Whether the URI is one of the registered ones, letter by letter; only the port of an http URI on a loopback
    address may differ: "Authorization servers MUST utilize exact string matching except for port numbers in localhost
    redirection URIs of native apps" RFC 9700 section 2.1"""
    return any(uri == known or _differs_in_loopback_port_only(uri, known) for known in registered)


def _differs_in_loopback_port_only(uri: str, known: str) -> bool:
    # "The authorization server MUST allow any port to be specified at the time of the request for loopback IP
    # redirect URIs." RFC 8252 section 7.3
    one, other = _LOOPBACK.fullmatch(uri), _LOOPBACK.fullmatch(known)
    if not one or not other or fault(uri) is not None:
        return False
    return one[1] == other[1] and one[3] == other[3]


def is_loopback(uri: str) -> bool:
    """Whether the redirect stays on the user's own machine: http on 127.0.0.1, [::1] or localhost."""
    return _LOOPBACK.fullmatch(uri) is not None


def is_web(uri: str) -> bool:
    """Whether the redirect leads to a web site: http or https, and not `is_loopback`."""
    return _WEB.fullmatch(uri) is not None and not is_loopback(uri)


def destination(uri: str) -> str:
    """Where the redirect leads, in a form for people: the host of a web address in lower case, with its port; or the
    scheme of an app with its colon."""
    web = _WEB.fullmatch(uri)
    return web[1].lower() if web else uri.partition(":")[0] + ":"


def form_action_source(uri: str) -> str:
    """The scheme of the redirect as a source expression for CSP's form-action. Chromium checks every redirect that
    follows a form post against it, also those by which an app leads on to another host (decision 151)."""
    return uri.partition(":")[0].lower() + ":"


def with_parameters(uri: str, parameters: Mapping[str, str]) -> str:
    """The URI with parameters added to its query, percent-encoded; the query that it has "MUST be retained when adding
    additional query parameters" (RFC 6749 section 3.1.2)."""
    separator = "" if uri.endswith(("?", "&")) else "&" if "?" in uri else "?"
    return uri + separator + urlencode(parameters, quote_via=quote)
