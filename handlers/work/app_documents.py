"""The metadata documents by which apps introduce themselves, downloaded from their addresses."""

from urllib.parse import urlsplit

from auth.apps.client_documents import Document, DocumentRefused
from connectors.connector import ProviderUnavailable
from connectors.reference.checked_download import download_checked
from handlers.loopback import is_loopback
from handlers.settings import Settings


def app_document(settings: Settings, address: str) -> Document:
    """The metadata document of an app, downloaded from this address. A service whose own address is this machine's may
    fetch from this machine, and if the operator named hosts, these may have private addresses. Raises
    DocumentRefused."""
    try:
        answer = download_checked(
            address,
            asks_loopback=is_loopback(urlsplit(settings.public_url).hostname or ""),
            asks_private=settings.client_documents is not None,
        )
    except ProviderUnavailable as error:
        raise DocumentRefused(str(error)) from None
    return Document(body=answer.body, media_type=answer.media_type, cache_control=answer.cache_control)
