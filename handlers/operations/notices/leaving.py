"""How letters to one address end without a sign-in, by a link that only they have."""

import base64
import hmac

from handlers.work.services import Services
from storage.bank_access import connection_secrets
from storage.bank_access.connection_keys import SecretsUnreadable
from storage.database import Transaction
from storage.keys.places import KeysUnusable
from storage.notices.ways import ending, targets
from storage.notices.ways.targets import NoticeTarget

LEAVE = "/account/leave"
LINK_LENGTH_MAX = 300


def link_of(services: Services, target: NoticeTarget, secret: str) -> str:
    """The address that ends letters to a target."""
    named = base64.urlsafe_b64encode(f"{target.user_id} {target.id} {secret}".encode()).decode().rstrip("=")
    return f"{services.settings.auth_url}{LEAVE}?of={named}"


def leave(services: Services, named: str) -> bool:
    """Remove the target that the link names, and tell its person at the others, without one more letter there. True
    also where it is gone already; False for a link with another secret, or none."""
    try:
        padded = named[:LINK_LENGTH_MAX] + "=" * (-len(named[:LINK_LENGTH_MAX]) % 4)
        user_id, id_, secret = base64.b64decode(padded, altchars=b"-_", validate=True).decode().split(" ")
    except ValueError:
        return False
    if not f"{user_id}{id_}".isprintable():
        return False
    own = services.of(user_id)
    target = targets.find(own, user_id, id_)
    if target is None:
        return True
    try:
        kept = connection_secrets.find(own, services.connection_keys, user_id, id_).get("leave", "")
    except (SecretsUnreadable, KeysUnusable):
        return False
    if not kept or not hmac.compare_digest(kept.encode(), secret.encode()):
        return False

    def work(session: Transaction) -> None:
        session.hold(user_id)
        if targets.find(session, user_id, id_) is not None:
            ending.remove(session, target, now=services.clock.now())

    own.atomically(work)
    return True
