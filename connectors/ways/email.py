"""Letters by e-mail, through the mail server of this service's operator: plain text, over TLS unless it is on this
machine."""

import re
import smtplib
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC
from email.headerregistry import Address as MailAddress
from email.headerregistry import HeaderRegistry, UnstructuredHeader
from email.message import EmailMessage
from email.policy import SMTP, Policy
from email.utils import format_datetime, parseaddr
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from connectors.ways import DELIVERED, Address, AddressRefused, Letter, LetterOutcome

SCHEME = "mailto"
SECONDS = 10.0  # for each step of a conversation with the server
LETTER_TAKES = 2.5  # times as long as other steps: what looks at a letter takes its time
ADDRESS = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9-]{2,63}"
)
NO_ADDRESS = "email: must be one address such as eva@example.org"
PORTS = {"smtp": 587, "smtps": 465}


class _Whole(UnstructuredHeader):
    """A header of one long word, which stays whole: Python would fold it into encoded words, which are no address."""

    def fold(self, *, policy: Policy) -> str:
        """The header in one line."""
        return f"{self.name}: {self}{policy.linesep}"  # type: ignore[attr-defined]  # of BaseHeader, which comes in


HEADERS = HeaderRegistry()
HEADERS.map_to_type("list-unsubscribe", _Whole)  # type: ignore[arg-type]  # which makes a BaseHeader of it
MAIL = SMTP.clone(header_factory=HEADERS)


class MailServer(Struct, frozen=True, kw_only=True):
    """The operator's mail server; `is_safe_from_start` for `smtps`. Without TLS it has to be on this machine
    (`is_here`)."""

    host: str
    port: int
    user: str = ""
    password: str = ""
    is_safe_from_start: bool = False
    is_here: bool = False

    @property
    def sender(self) -> str:
        """The address by which letters are sent where none is named: the user's there, if it is one."""
        return self.user if ADDRESS.fullmatch(self.user) else f"bankdata@{self.host}"

    def __repr__(self) -> str:
        return f"MailServer(host={self.host!r}, port={self.port})"  # no log shows the password


def mail_server(text: str) -> MailServer:
    """The server that an address `smtp://USER:PASSWORD@HOST:PORT` or `smtps://...` names. Raises ValueError."""
    parts = urlsplit(text)
    host, port = parts.hostname or "", parts.port
    if parts.scheme not in PORTS or not host or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("smtp://USER:PASSWORD@HOST:PORT or smtps://USER:PASSWORD@HOST")
    return MailServer(
        host=host,
        port=port or PORTS[parts.scheme],
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        is_safe_from_start=parts.scheme == "smtps",
        is_here=host in ("localhost", "127.0.0.1", "::1"),
    )


def mail_sender(text: str) -> str:
    """The address in `Name <address>` or `address`, by which letters are sent, as it stands. Raises ValueError."""
    if not ADDRESS.fullmatch(parseaddr(text)[1]) or not text.isprintable():
        raise ValueError("an address such as bank@example.org or Our bank <bank@example.org>")
    return text


class Mail:
    """The way by e-mail. `seconds` is what the server has for each step; `tls` is for tests."""

    def __init__(
        self, server: MailServer, sender: str, *, seconds: float = SECONDS, tls: ssl.SSLContext | None = None
    ) -> None:
        self._server = server
        self._name, self._address = parseaddr(sender)
        self._seconds = seconds
        self._given = tls

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        if self._given is not None:
            return self._given
        made = ssl.create_default_context()  # loads the authorities, for which no other command has to wait
        if self._server.is_here:  # nobody listens between, and its certificate is its own
            made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
        return made

    def checked(self, given: Any) -> Address:
        """One plain address; raises AddressRefused."""
        text = str(given).strip()
        if not ADDRESS.fullmatch(text) or ".." in text or ".@" in text or text.startswith("."):
            raise AddressRefused(NO_ADDRESS)
        return Address(sealed=text, scheme=SCHEME, last=text[-4:])

    def send(self, address: str, letter: Letter) -> LetterOutcome:
        """Hand the letter to the mail server, which delivers it."""
        message = self.written(address, letter)
        try:
            with self._conversation() as server:
                server.send_message(message, self._address, [address])
        except smtplib.SMTPRecipientsRefused as error:
            return _refusal(max(code for code, _ in error.recipients.values()))
        except smtplib.SMTPDataError as error:
            return _refusal(error.smtp_code)
        except smtplib.SMTPSenderRefused as error:  # the operator's trouble, not this address's
            return LetterOutcome(state="later", reason="not_allowed" if error.smtp_code >= 500 else "too_many")
        except (smtplib.SMTPNotSupportedError, smtplib.SMTPAuthenticationError):
            return LetterOutcome(state="later", reason="not_allowed")
        except ssl.SSLError:
            return LetterOutcome(state="later", reason="certificate")
        except TimeoutError:
            return LetterOutcome(state="later", reason="timeout")
        except socket.gaierror:
            return LetterOutcome(state="later", reason="name_not_found")
        except smtplib.SMTPServerDisconnected as error:
            is_slow = isinstance(error.__context__, TimeoutError)
            return LetterOutcome(state="later", reason="timeout" if is_slow else "no_answer")
        except (OSError, smtplib.SMTPException):
            return LetterOutcome(state="later", reason="not_connected")
        return DELIVERED

    def close(self) -> None:
        """Nothing is kept open."""

    def written(self, address: str, letter: Letter) -> EmailMessage:
        """The letter as a message. What a stranger wrote stands in one line of the subject, or in the text."""
        message = EmailMessage(policy=MAIL)
        message["From"] = MailAddress(_line(self._name), addr_spec=self._address)
        message["To"] = MailAddress(addr_spec=address)
        message["Subject"] = _line(letter.title)
        message["Date"] = format_datetime(letter.at.replace(tzinfo=UTC))
        message["Message-ID"] = f"<{letter.id}@{self._address.rpartition('@')[2]}>"
        message["Auto-Submitted"] = "auto-generated"  # RFC 3834: nobody's absence is answered
        if letter.leave:
            message["List-Unsubscribe"] = f"<{letter.leave}>"
            message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        message.set_content("\n\n".join(part for part in (letter.text, letter.link) if part) + "\n")
        return message

    @contextmanager
    def _conversation(self) -> Iterator[smtplib.SMTP]:
        place = self._server
        if place.is_safe_from_start:
            server: smtplib.SMTP = smtplib.SMTP_SSL(place.host, place.port, timeout=self._seconds, context=self._tls)
        else:
            server = smtplib.SMTP(place.host, place.port, timeout=self._seconds)
        try:
            server.ehlo_or_helo_if_needed()
            if not place.is_safe_from_start and (server.has_extn("starttls") or not place.is_here):
                server.starttls(context=self._tls)  # raises where the server has no TLS
            if place.user:
                server.login(place.user, place.password)
            if server.sock is not None:
                server.sock.settimeout(self._seconds * LETTER_TAKES)
            yield server
            with suppress(OSError, smtplib.SMTPException):
                server.quit()  # the letter was taken, whatever the answer
        finally:
            server.close()


def _refusal(code: int) -> LetterOutcome:
    if code >= 500:
        return LetterOutcome(state="refused", reason="refused")
    return LetterOutcome(state="later", reason="too_many")


def _line(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
