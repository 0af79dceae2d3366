"""Standard Webhooks 1.0: secrets, kept encrypted like those that open banks, and the signed headers by which a receiver
knows that a request is genuine."""

import base64
import hmac
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from secrets import token_bytes

from handlers.work.services import Services
from storage.bank_access import connection_secrets
from storage.database import Session
from storage.webhooks.hooks import Webhook

PREFIX = "whsec_"
SECRET_BYTES = 32  # the specification wants 24 to 64
BOTH_SIGN_FOR = timedelta(hours=24)  # a new secret and the former one


def new_secret() -> str:
    """A new random secret in the form in which it is shown: `whsec_` and base64."""
    return PREFIX + base64.b64encode(token_bytes(SECRET_BYTES)).decode()


def signature(secret: str, id_: str, timestamp: int, body: str) -> str:
    """The signature of a message with one secret, as it stands in the header: `v1,` and base64."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return "v1," + base64.b64encode(hmac.digest(key, f"{id_}.{timestamp}.{body}".encode(), "sha256")).decode()


def headers(secrets: Sequence[str], id_: str, at: datetime, body: str) -> dict[str, str]:
    """The HTTP headers of one attempt at this moment (UTC), signed with each of the secrets."""
    timestamp = int(at.replace(tzinfo=UTC).timestamp())
    return {
        "Content-Type": "application/json",
        "User-Agent": "bankdata",
        "webhook-id": id_,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signature(each, id_, timestamp, body) for each in secrets),
    }


def replace_secret(services: Services, session: Session, user_id: str, webhook_id: str, now: datetime) -> str:
    """Give the webhook a new secret and return it; the previous one, if there is one, signs too for a day, or until
    the next one: of a secret that has leaked two calls are the end. The caller is inside `connection_keys.hold()`."""
    before = connection_secrets.find(session, services.connection_keys, user_id, webhook_id)
    secrets = {"secret": new_secret()}
    if before:
        secrets |= {"former": before["secret"], "formerUntil": (now + BOTH_SIGN_FOR).isoformat()}
    connection_secrets.keep(session, services.connection_keys, user_id, webhook_id, secrets)
    return secrets["secret"]


def valid_secrets(services: Services, webhook: Webhook, now: datetime) -> list[str]:
    """The secrets that sign at this moment, the present one first, the former one for a day after it; empty if none is
    stored. Raises SecretsUnreadable and KeysUnusable."""
    own = services.of(webhook.user_id)
    secrets = connection_secrets.find(own, services.connection_keys, webhook.user_id, webhook.id)
    is_former_valid = "former" in secrets and now < datetime.fromisoformat(secrets["formerUntil"])
    names = ("secret", "former") if is_former_valid else ("secret",)
    return [secrets[name] for name in names if name in secrets]
