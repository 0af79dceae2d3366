"""The exception that shows a person a page of explanation instead of the page they wanted."""

from dataclasses import KW_ONLY, dataclass


@dataclass(eq=False)
class Mistake(Exception):
    """Ends a request with a page that says what went wrong; `name` is the name of its text, `detail` a sentence added
    to it, `back` an address to which the page links, `retry_after` seconds."""

    name: str
    _: KW_ONLY
    status: int = 400
    detail: str = ""
    back: str | None = None
    retry_after: int | None = None
    challenge: str | None = None  # for WWW-Authenticate, which a 401 needs (RFC 9110 section 15.5.2)
