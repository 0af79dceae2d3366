"""Everything else a person has, by Apprise: an address of theirs, such as ntfys://ntfy.example.org/topic."""

import json
import re
import socket
import ssl
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from connectors.public_addresses import Network
from connectors.waiting_process import WaitingProcess
from connectors.ways import Address, AddressRefused, Letter, LetterOutcome

NEVER = frozenset(["blink1", "dbus", "gio", "glib", "gnome", "kde", "macosx", "qt", "syslog", "windows"])
"""Schemes that write to this machine itself."""
SECONDS_MAX = 20
ADDRESS = re.compile(r"[a-z0-9]+://[!->@-~]{1,1000}(\?[!-~]*)?")
MEMBERS = re.compile(r"\?((priority|tags|channel)=[A-Za-z0-9_,.-]{1,100}(&|$))*")
KINDS = "This server sends to addresses of these kinds alone: {schemes}"
MEMBERS_ALONE = "Nothing but priority, tags and channel may follow the question mark"
UNKNOWN = "Apprise knows no such address, or it has more than one receiver"
NOT_NOW = "Apprise does not answer at present. Try again in a minute"
_LATER = ("timeout", "no_answer", "not_connected", "name_not_found", "certificate")


def is_installed() -> bool:
    """Whether the extra `notices` is there."""
    return find_spec("apprise") is not None


class ByApprise:
    """The way by Apprise, from a process of its own. Safe to use from any thread."""

    def __init__(self, schemes: Collection[str], allowed: Iterable[Network]) -> None:
        """Prepare to send to addresses of these schemes, on the public internet and in the `allowed` networks."""
        self._schemes = schemes
        self._allowed = [str(each) for each in allowed]
        system = ssl.get_default_verify_paths()  # requests has authorities of its own, without the operator's
        environment = {"HOME": "/nonexistent", "REQUESTS_CA_BUNDLE": system.cafile or system.capath or ""}
        self._process = WaitingProcess("connectors.ways.apprise_process", environment)

    def checked(self, given: Any) -> Address:
        """The address, which Apprise can write to. Raises AddressRefused."""
        text = given.strip() if isinstance(given, str) else ""
        scheme = text.partition("://")[0]
        if scheme not in self._schemes or scheme in NEVER:
            raise AddressRefused(KINDS, schemes=", ".join(sorted(self._schemes)))
        found = ADDRESS.fullmatch(text)
        if found is None:
            raise AddressRefused(UNKNOWN)
        if not MEMBERS.fullmatch(found[1] or "?"):
            raise AddressRefused(MEMBERS_ALONE)
        answer = self._ask(text, None)
        if not answer.get("isTaken"):
            raise AddressRefused(UNKNOWN if "isTaken" in answer else NOT_NOW)
        return Address(sealed=text, scheme=scheme, last=text.partition("?")[0][-4:])

    def send(self, address: str, letter: Letter) -> LetterOutcome:
        """Send the letter as plain text; what came of it, after 20 seconds at most."""
        if letter.is_silent:
            bare, _, members = address.partition("?")
            kept = [each for each in members.split("&") if each and not each.startswith("priority=")]
            address = f"{bare}?{'&'.join([*kept, 'priority=low', 'silent=yes'])}"
        text = "\n".join(filter(None, (letter.text, letter.link)))
        return _outcome(self._ask(address, text, title=letter.title))

    def close(self) -> None:
        """End the process; the next letter starts another one."""
        self._process.end()

    def _ask(self, url: str, text: str | None, *, title: str = "") -> dict[str, Any]:
        """The answer of the process to a request; where it gave none, an error word alone."""
        request = {"url": url, "title": title, "text": text, "allowed": self._allowed, "seconds": SECONDS_MAX}
        begun = time.monotonic()
        ours, its = socket.socketpair()
        with ours, suppress(OSError, ValueError):
            with its:
                self._process.send([its.fileno()])
            ours.settimeout(SECONDS_MAX + 1)
            ours.sendall(json.dumps(request).encode())
            ours.shutdown(socket.SHUT_WR)
            answer: dict[str, Any] = json.loads(b"".join(iter(lambda: ours.recv(1 << 16), b"")))
            return answer
        return {"error": "timeout" if time.monotonic() - begun >= SECONDS_MAX else "no_answer"}


def _outcome(answer: dict[str, Any]) -> LetterOutcome:
    status, error = answer.get("status"), answer.get("error")
    if answer.get("isTaken"):
        return LetterOutcome(state="delivered")
    if error in _LATER:
        return LetterOutcome(state="later", reason=error)
    if status == 429:
        return LetterOutcome(state="later", reason="too_many", wait=answer["wait"])
    if status is not None and status >= 500:
        return LetterOutcome(state="later", reason="no_answer", wait=answer["wait"])
    if status in (401, 403):
        return LetterOutcome(state="paused", reason="not_allowed")
    return LetterOutcome(state="refused", reason=error or ("gone" if status in (404, 410) else "refused"))
