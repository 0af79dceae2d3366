"""The cookies of the pages: the session, that somebody has signed in with this browser before, and what waits for a
sign-in."""

import base64
from collections.abc import Mapping
from datetime import timedelta

from starlette.datastructures import Headers
from starlette.responses import Response

from auth.people.sessions import KNOWN_BROWSER_LIFETIME, LIFETIME, Browser

WAITING_LIFETIME = timedelta(minutes=15)
WAITING_LENGTH_MAX = 2_800  # of one cookie browsers keep 4,096 bytes, and base64 takes a third more


class Cookies:
    """Sets them, each for this host alone and out of reach of scripts."""

    def __init__(self, *, is_https: bool) -> None:
        self._is_https = is_https
        prefix = "__Host-" if is_https else ""
        self.session = f"{prefix}bds_session"
        self.known = f"{prefix}bds_known"
        self.waiting = f"{prefix}bds_waiting"

    def remember(self, response: Response, browser: Browser) -> None:
        """Give a browser its session."""
        self._set_cookie(response, self.session, browser.secret, LIFETIME)

    def remember_known(self, response: Response, value: str) -> None:
        """Let a browser be known at the next sign-in."""
        self._set_cookie(response, self.known, value, KNOWN_BROWSER_LIFETIME)

    def remember_waiting(self, response: Response, query: str) -> None:
        """Keep an authorization request, at which nobody has looked yet, until somebody is signed in."""
        value = base64.urlsafe_b64encode(query.encode()).decode().rstrip("=")
        self._set_cookie(response, self.waiting, value, WAITING_LIFETIME if query else timedelta())

    def waiting_query(self, cookies: Mapping[str, str]) -> str:
        """The query of that request; empty where none waits."""
        value = cookies.get(self.waiting, "")
        try:
            return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).decode()
        except ValueError:
            return ""

    def forget(self, response: Response) -> None:
        """Take the session away."""
        self._set_cookie(response, self.session, "", timedelta())

    def _set_cookie(self, response: Response, name: str, value: str, lifetime: timedelta) -> None:
        response.set_cookie(
            name,
            value,
            max_age=int(lifetime.total_seconds()),
            path="/",
            secure=self._is_https,
            httponly=True,
            samesite="lax",
        )


def sent_cookies(headers: Headers) -> Mapping[str, str]:
    """The cookies of a browser as they were set: nothing is unquoted, since ours need no quotes.

    Starlette leaves that to `http.cookies`, whose cost before Python 3.11.10 is the square of their length
    (CVE-2024-7592).
    """
    pairs = [pair.partition("=") for header in headers.getlist("cookie") for pair in header.split(";")]
    return {name.strip(): value.strip() for name, _, value in pairs}
