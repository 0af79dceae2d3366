"""The headers that every answer gets, among them those that let scripts of other origins read it (CORS).

What a page may load (Content-Security-Policy) stands beside the page: handlers/page/serving.py,
handlers/oauth/rendering.py, documentation.py.
"""

from collections.abc import Sequence

Header = tuple[bytes, bytes]

PREFLIGHT_SECONDS = 7200  # the longest that Chromium remembers

_ALWAYS = ((b"x-content-type-options", b"nosniff"),)
_SHARED = (
    *_ALWAYS,
    (b"access-control-allow-origin", b"*"),  # never with credentials: there are no cookies on these paths
    (
        b"access-control-expose-headers",
        b"WWW-Authenticate, Retry-After, RateLimit, RateLimit-Policy, Link, Location, ETag, X-Request-Id,"
        b" Unconverted-Currencies, Next-Cursor",
    ),
)
PREFLIGHT: Sequence[Header] = (
    (b"access-control-allow-methods", b"GET, HEAD, POST"),
    (
        b"access-control-allow-headers",
        b"Authorization, Content-Type, If-None-Match, MCP-Protocol-Version, *",
    ),  # * leaves Authorization out
    (b"access-control-max-age", b"%d" % PREFLIGHT_SECONDS),
)


def response_headers(*, is_shared: bool) -> Sequence[Header]:
    """The headers that every answer gets; `is_shared` adds those that let scripts of other origins read it."""
    return _SHARED if is_shared else _ALWAYS
