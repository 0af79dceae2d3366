"""The cookies of the pages: the session, a mark of a browser in which somebody signed in before, and a request that
waits for a sign-in."""

import base64
from collections.abc import Mapping
from datetime import timedelta

from starlette.datastructures import Headers
from starlette.responses import Response

from auth import lifetimes
from auth.people.sessions import Browser

WAITING_LENGTH_MAX = 2_800  # browsers keep 4,096 bytes of a cookie, and base64 lengthens the query by a third


class Cookies:
    """Sets and reads the cookies of the pages, each for this host alone and hidden from scripts; over https alone, if
    the pages are (`is_https`)."""

    def __init__(self, *, is_https: bool) -> None:
        self._is_https = is_https
        prefix = "__Host-" if is_https else ""
        self.session = f"{prefix}bds_session"
        self.known = f"{prefix}bds_known"
        self.waiting = f"{prefix}bds_waiting"

    def set_session(self, response: Response, browser: Browser) -> None:
        """Set the cookie of the browser's session, for seven days."""
        self._set_cookie(response, self.session, browser.secret, lifetimes.SESSION)

    def set_known(self, response: Response, value: str) -> None:
        """Set the cookie of a browser with which its user has signed in before (`Sessions.knows`), for 180 days."""
        self._set_cookie(response, self.known, value, lifetimes.KNOWN_BROWSER)

    def set_waiting(self, response: Response, query: str) -> None:
        """Keep the query of an authorization request, still unchecked, or the path of a page in a cookie for 15
        minutes, until somebody has signed in; an empty text deletes the cookie."""
        value = base64.urlsafe_b64encode(query.encode()).decode().rstrip("=")
        self._set_cookie(response, self.waiting, value, lifetimes.WAITING_REQUEST if query else timedelta())

    def waiting_query(self, cookies: Mapping[str, str]) -> str:
        """The query or path in the cookie that `set_waiting` set; empty if there is none or it is unreadable."""
        value = cookies.get(self.waiting, "")
        try:
            return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).decode()
        except ValueError:
            return ""

    def delete_session(self, response: Response) -> None:
        """Delete the cookie of the session from the browser; the session itself stays in the store."""
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
    """The cookies that a browser sent, by name, as they were set; nothing is unquoted, since ours need no quotes. Of
    two with one name, the last.

    Starlette leaves that to `http.cookies`, whose cost before Python 3.11.10 is quadratic in the length of the header
    (CVE-2024-7592). Only blanks and tabs are around a name: without another byte that Python calls a space, the cookie
    of a sibling host would bear the prefix `__Host-`, which its browser did not see there.
    """
    pairs = [pair.partition("=") for header in headers.getlist("cookie") for pair in header.split(";")]
    return {name.strip(" \t"): value.strip(" \t") for name, _, value in pairs}
