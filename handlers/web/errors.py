"""Every failure that a caller of the data interface can get, and the one function that builds an error body."""

from collections.abc import Mapping

from analytics.messages import Saying
from handlers.web.request import Answer

RETRY_SECONDS = 2  # until asking again makes sense, after the store did not answer


class Refusal(Saying):
    """Raised to answer a request with an error of this `status`. `str(error)` is the sentence the caller reads, `text`
    if no other is given (interface 2.13)."""

    status = 500
    text = "Internal error"

    def __init__(
        self, template: str | None = None, *, headers: Mapping[str, str] | None = None, **arguments: object
    ) -> None:
        super().__init__(template or self.text, **arguments)
        self.headers: dict[str, str] = dict(headers or {})


class BadRequest(Refusal):
    """A value that the client sent cannot be used; the message names the parameter and what is allowed."""

    status = 400


class Unauthorized(Refusal):
    """The request has no usable access token."""

    status = 401
    text = "Unauthorized"


class Forbidden(Refusal):
    """The token is valid but does not allow this operation."""

    status = 403


class NotFound(Refusal):
    """What the request names does not exist, or belongs to somebody else: the two look the same."""

    status = 404
    text = "Not found"


class MethodNotAllowed(Refusal):
    """The path exists, but not with this method; message and Allow header name the `allowed` ones."""

    status = 405

    def __init__(self, allowed: frozenset[str]) -> None:
        names = ", ".join(sorted(allowed))
        # "The origin server MUST generate an Allow header field in a 405 response." RFC 9110 15.5.6
        super().__init__("Method not allowed. Allowed: {names}", names=names, headers={"allow": names})


class Conflicting(Refusal):
    """The request does not fit the present state; the message says what to do."""

    status = 409


class Gone(Refusal):
    """A cursor or id that the client hands back was valid once; the message says how to begin again."""

    status = 410


class ContentTooLarge(Refusal):
    """The body is larger than the service reads."""

    status = 413

    def __init__(self, limit: int) -> None:
        super().__init__("The body is larger than {limit} bytes", limit=limit)


class UnsupportedMediaType(Refusal):
    """The body is in a format or an encoding that the operation does not read."""

    status = 415


class MisdirectedRequest(Refusal):
    """The Host header names a host that is not ours."""

    status = 421
    text = "This host is not served here: BANKDATA_PUBLIC_URL names the one that is"


class TooManyRequests(Refusal):
    """A limit is used up; trying again earlier than `retry_after` seconds from now, at least 1, is pointless."""

    status = 429
    text = "Rate limit exceeded"

    def __init__(self, template: str | None = None, retry_after: int = 1, **arguments: str | int) -> None:
        super().__init__(template, headers=None, **arguments)
        self.retry_after = max(1, retry_after)


class Unavailable(Refusal):
    """The store, or something else that answers need, cannot be reached at present."""

    status = 503
    text = "The service cannot be used at the moment. Try again in a few seconds"

    def __init__(self, template: str | None = None, *, retry_after: int = RETRY_SECONDS) -> None:
        super().__init__(template, headers={"retry-after": str(retry_after)})


class ChangeWaits(Unavailable):
    """Another change of the same user takes long; nothing of this one was stored."""

    text = "Another change to your data is still being stored. Try again in a few seconds"


class TooManyAtOnce(Unavailable):
    """So many requests of one user are being answered that a further one would take from others."""

    text = "Too many of your requests are being answered at once. Try again in a few seconds"


def error_answer(error: Refusal) -> Answer:
    """The answer to a failure: `{"error": "<message>"}` with its status and headers, with Retry-After for a limit."""
    headers = dict(error.headers)
    if isinstance(error, TooManyRequests):
        headers["retry-after"] = str(error.retry_after)
    return Answer(body={"error": str(error)}, status=error.status, headers=headers)
