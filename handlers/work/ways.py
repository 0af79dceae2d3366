"""The ways to people that this server has, by name, as its settings say."""

import logging
from collections.abc import Mapping
from functools import partial
from urllib.parse import urlsplit

from connectors.ways import Way
from connectors.ways.apprise import ByApprise, is_installed
from connectors.ways.email import Mail
from connectors.ways.web_push import WebPush, WebPushKey
from handlers.settings import Settings
from storage.bank_access.connection_keys import ConnectionKeys, SecretsUnreadable
from storage.database import Database
from storage.notices import push_key

RENEWED_BY = "bankdata notices renew-push-key"

log = logging.getLogger("bankdata.notices")


def ways_of(settings: Settings, everybody: Database, keys: ConnectionKeys) -> Mapping[str, Way]:
    """The ways by name; one that is not set up here is missing."""
    key = partial(web_push_key, everybody, keys)
    contact = urlsplit(settings.public_url)._replace(scheme="https").geturl()  # http is this machine, known to nobody
    allowed = (*settings.webhooks_allow, *settings.notice_allow)
    found: dict[str, Way] = {"push": WebPush(key, contact=contact, allowed=allowed)}
    if settings.smtp_url is not None:
        found["email"] = Mail(settings.smtp_url, settings.smtp_from or settings.smtp_url.sender)
    if settings.notice_targets and is_installed():
        found["apprise"] = ByApprise(settings.notice_targets, settings.notice_allow)
    return found


def web_push_key(everybody: Database, keys: ConnectionKeys) -> WebPushKey:
    """The key by which push services know this store; made when it is first asked for. Raises SecretsUnreadable and
    KeysUnusable."""
    try:
        return WebPushKey(push_key.find(everybody, keys, WebPushKey.new))
    except SecretsUnreadable:
        log.warning("the key towards push services cannot be read: bring its key back, or renew it (%s)", RENEWED_BY)
        raise
