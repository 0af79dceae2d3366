"""The exception that shows a person a page of explanation instead of the page they wanted."""


class Mistake(Exception):
    """Ends a request with a page that says what went wrong; `name` is the name of its text."""

    def __init__(
        self,
        name: str,
        *,
        status: int = 400,
        detail: str = "",
        back: str | None = None,
        retry_after: int | None = None,
        challenge: str | None = None,
    ) -> None:
        """`challenge` goes into WWW-Authenticate, which a 401 needs (RFC 9110 section 15.5.2)."""
        super().__init__(name)
        self.name = name
        self.status = status
        self.detail = detail
        self.back = back
        self.retry_after = retry_after
        self.challenge = challenge
