"""Standard Webhooks 1.0: secrets, and the signed headers by which a receiver knows that a request is genuine."""

import base64
import hmac
from collections.abc import Sequence
from datetime import UTC, datetime
from secrets import token_bytes

PREFIX = "whsec_"
SECRET_BYTES = 32  # the specification wants 24 to 64


def new_secret() -> str:
    """A new secret in the form in which it is shown."""
    return PREFIX + base64.b64encode(token_bytes(SECRET_BYTES)).decode()


def signature(secret: str, id_: str, timestamp: int, body: str) -> str:
    """The signature of a message with one secret."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return "v1," + base64.b64encode(hmac.digest(key, f"{id_}.{timestamp}.{body}".encode(), "sha256")).decode()


def headers(secrets: Sequence[str], id_: str, at: datetime, body: str) -> dict[str, str]:
    """The headers of one attempt at this moment, signed with each of the secrets."""
    timestamp = int(at.replace(tzinfo=UTC).timestamp())
    return {
        "Content-Type": "application/json",
        "User-Agent": "bankdata",
        "webhook-id": id_,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signature(each, id_, timestamp, body) for each in secrets),
    }
