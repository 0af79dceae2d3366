"""The household's provider, as the settings name it, and how it is asked: over TLS, briefly, without redirects."""

import threading
from pathlib import Path
from urllib.parse import urlsplit

from auth.people.provider_metadata import ProviderAway, ProviderQuery, ProviderReply, ProviderSettings
from connectors.connector import SourceError
from connectors.outgoing_http import Patience, Provider
from connectors.reachable import is_reachable
from handlers.settings import Settings

PATIENCE = Patience(connect=3.0, silence=5.0, whole=5.0, pauses=(), answer_bytes=262_144)
HOSTS_MAX = 8  # that one provider may name as its own


def provider_of(settings: Settings) -> ProviderSettings | None:
    """The household's provider; None where the settings name none."""
    if not settings.oidc_issuer:
        return None
    claim, values = settings.oidc_groups or ("", frozenset())
    return ProviderSettings(
        issuer=settings.oidc_issuer,
        client_id=settings.oidc_client_id,
        client_secret=settings.oidc_client_secret,
        name=settings.oidc_name or urlsplit(settings.oidc_issuer).hostname or "",
        groups_claim=claim,
        groups=values,
        takes_new_people=settings.oidc_new_people,
        is_only=settings.oidc_only,
    )


class Asking:
    """Asks the provider; only addresses that its own metadata name come here. Safe from any thread."""

    def __init__(self, ca_file: Path | None) -> None:
        self._ca_file = ca_file
        self._hosts: dict[str, Provider] = {}
        self._lock = threading.Lock()

    def __call__(self, query: ProviderQuery) -> ProviderReply:
        """The provider's answer. Raises ProviderAway."""
        parts = urlsplit(query.address)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = {"Accept": "application/json", **query.headers}
        try:
            host = self._host_of(f"{parts.scheme}://{parts.netloc}")
            if query.form is not None:
                answer = host.post(path, form=query.form, headers=headers)
            else:
                answer = host.get(path, headers=headers)
        except (SourceError, OSError) as error:
            raise ProviderAway(f"{parts.hostname}: {error}") from error
        return ProviderReply(status=answer.status, media_type=answer.content_type, body=answer.body)

    def close(self) -> None:
        """Close the connections to the provider."""
        with self._lock:
            for each in self._hosts.values():
                each.close()
            self._hosts.clear()

    def _host_of(self, origin: str) -> Provider:
        with self._lock:
            if origin not in self._hosts and (len(self._hosts) >= HOSTS_MAX or not is_reachable(origin)):
                raise ProviderAway(f"{origin} is not asked")
            return self._hosts.setdefault(origin, Provider(origin, patience=PATIENCE, ca_file=self._ca_file))
