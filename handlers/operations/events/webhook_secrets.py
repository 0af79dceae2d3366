"""The secrets of webhooks, encrypted like those that open banks: the present one, and for a day the previous one."""

from datetime import datetime, timedelta

from handlers.operations.events.signing import new_secret
from handlers.services import Services
from storage.bank_access import connection_secrets
from storage.database import Session
from storage.webhooks.hooks import Webhook

BOTH_SIGN_FOR = timedelta(hours=24)


def replace(services: Services, session: Session, user_id: str, webhook_id: str, now: datetime) -> str:
    """Give the webhook a new secret and return it; the previous one signs too for a day. The caller has the keys
    `held`."""
    before = connection_secrets.find(session, services.connection_keys, user_id, webhook_id)
    secrets = {"secret": new_secret()}
    if before:
        secrets |= {"former": before["secret"], "formerUntil": (now + BOTH_SIGN_FOR).isoformat()}
    connection_secrets.keep(session, services.connection_keys, user_id, webhook_id, secrets)
    return secrets["secret"]


def valid(services: Services, webhook: Webhook, now: datetime) -> list[str]:
    """The secrets that sign at this moment, the present one first; raises SecretsUnreadable and KeysUnusable."""
    own = services.of(webhook.user_id)
    found = connection_secrets.find(own, services.connection_keys, webhook.user_id, webhook.id)
    is_former_valid = "former" in found and now < datetime.fromisoformat(found["formerUntil"])
    names = ("secret", "former") if is_former_valid else ("secret",)
    return [found[name] for name in names if name in found]
