"""The line to a bank that uses FinTS: messages of python-fints are sent by our own HTTP client, and answers are
checked.

The library's own connection has no timeout, follows redirects and logs messages. It is never used, and neither is its
masking of PINs for that log, which one dialog would disable for another.
"""

import base64
import logging
import warnings
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from fints.message import FinTSInstituteMessage
from fints.parser import FinTSParserWarning

from connectors.connector import Misconfigured, ProviderUnavailable
from connectors.outgoing_http import Provider
from connectors.reachable import is_reachable

logging.getLogger("fints").setLevel(logging.CRITICAL + 1)  # this logger prints customers' data
warnings.filterwarnings("ignore", category=FinTSParserWarning)  # likewise, about unknown segments


MORE_PAGES = "3040"  # "Es liegen weitere Informationen vor", with the point at which to continue
PAGES_MAX = 200  # of one order: python-fints requests the next page within the call for the last one


class PagesWithoutEnd(Exception):
    """The pages of an answer lead back to an earlier one, or are too many."""


class BankLine:
    """Takes the place of python-fints's own connection to a bank: has `send`, and in `codes` those of the last answer.
    `close` it after use.

    `pages` are the points at which the bank continued the answer to an order; the caller clears them before each order.
    """

    def __init__(self, address: str) -> None:
        """Prepare the line to a bank's address, as its customer named it. Raises Misconfigured."""
        if not is_reachable(address):
            raise Misconfigured("The FinTS address of a bank begins with https:// and has no password in it.")
        parts = urlsplit(address)
        self.url = address
        self.codes: Sequence[str] = ()
        self.pages: set[str] = set()
        self._provider = Provider(f"{parts.scheme}://{parts.netloc}")
        self._path = urlunsplit(("", "", parts.path or "/", parts.query, ""))

    def send(self, message: Any) -> Any:
        """Send a message, and return the bank's parsed answer; its codes are in `codes` afterwards. Raises
        ProviderUnavailable, PagesWithoutEnd, and anything for an answer that the library cannot read (`dialog.py`
        translates it)."""
        answer = self._provider.post(
            self._path, content=base64.b64encode(message.render_bytes()), headers={"Content-Type": "text/plain"}
        )
        if answer.status != 200:
            raise ProviderUnavailable(detail=f"status {answer.status}")
        self.codes = ()  # nothing is known of an answer that cannot be read
        read = FinTSInstituteMessage(segments=_decode(answer.body))
        responses = [said for part in read.find_segments(("HIRMG", "HIRMS")) for said in part.responses]
        self.codes = [str(said.code) for said in responses]
        following = [str(said.parameters[0]) for said in responses if said.code == MORE_PAGES]
        if read.segments[0].header.type != "HNHBK":
            raise ProviderUnavailable("The bank sent a damaged answer.", detail="no FinTS message")
        if following and (following[0] in self.pages or len(self.pages) >= PAGES_MAX):
            raise PagesWithoutEnd
        self.pages.update(following)
        return read

    @property
    def refusal(self) -> str | None:
        """The code with which the bank refused the last message, else None; 9050 only says that another code
        follows."""
        return next((code for code in self.codes if code.startswith("9") and code != "9050"), None)

    def close(self) -> None:
        """Close the connection."""
        self._provider.close()


def _decode(body: bytes) -> bytes:
    """The decoded answer: base64, which some banks break into lines."""
    return base64.b64decode(b"".join(body.split()), validate=True)
