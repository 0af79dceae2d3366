"""A mail server that is really there, and a person who is told by it."""

import asyncio
import email
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from auth.principal import PAGE
from auth.scopes import ALL_SCOPES
from connectors.ways.email import Mail, mail_server
from handlers.operations import operations
from handlers.operations.notices import sending
from handlers.operations.notices.sending import NoticeSender
from handlers.server import application
from storage.notices.ways import deliveries
from tests.imports.household import Household
from tests.imports.test_notices import Noticed

Json = dict[str, Any]
SECONDS_MAX = 60.0


class MailServer:
    """An SMTP server (RFC 5321, STARTTLS by RFC 3207) on a port of its own. `answers` are its next answers to a
    command, such as RCPT; the commands in `silent` it never answers."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.came: list[tuple[str, list[str], EmailMessage]] = []
        self.answers: dict[str, list[str]] = {}
        self.silent: set[str] = set()
        self.said: list[str] = []
        self.tls = tls
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self.talk, "127.0.0.1", 0), self.loop
        ).result(SECONDS_MAX)
        self.port = self.server.sockets[0].getsockname()[1]

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.CancelledError, OSError):  # the client has had enough, or the test is over
            await self.converse(reader, writer)
        writer.close()

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sender, is_safe = "", False
        to: list[str] = []
        writer.write(b"220 here\r\n")
        while line := await reader.readline():
            command = line.decode().strip()
            word = command.partition(" ")[0].partition(":")[0].upper()
            self.said.append(f"{word}{' TLS' if is_safe else ''}")
            if word in self.silent:
                await asyncio.sleep(SECONDS_MAX)
            answer = self.answers.get(word, [])
            if answer:
                writer.write(f"{answer.pop(0)}\r\n".encode())
                continue
            if word == "EHLO":
                more = ["STARTTLS"] if self.tls is not None and not is_safe else ["AUTH PLAIN"]
                writer.write("".join(f"250-{each}\r\n" for each in ("here", *more)).encode() + b"250 SMTPUTF8\r\n")
            elif word == "STARTTLS" and self.tls is not None:
                writer.write(b"220 go ahead\r\n")
                await writer.start_tls(self.tls)
                is_safe = True
            elif word == "AUTH":
                writer.write(b"235 welcome\r\n")
            elif word == "MAIL":
                sender, to = re.findall("<(.*?)>", command)[0], []
                writer.write(b"250 ok\r\n")
            elif word == "RCPT":
                to.append(re.findall("<(.*?)>", command)[0])
                writer.write(b"250 ok\r\n")
            elif word == "DATA":
                writer.write(b"354 go on\r\n")
                raw = await reader.readuntil(b"\r\n.\r\n")
                text = raw[:-3].replace(b"\r\n..", b"\r\n.")
                message = email.message_from_bytes(text, policy=default)
                assert isinstance(message, EmailMessage)
                self.came.append((sender, to, message))
                writer.write(b"250 taken\r\n")
            elif word == "QUIT":
                writer.write(b"221 bye\r\n")
                break
            else:
                writer.write(b"250 ok\r\n")

    def close_listening(self) -> None:
        """Take no more connections."""

        async def end() -> None:
            self.server.close()
            await asyncio.sleep(0)  # until the socket is closed, too

        asyncio.run_coroutine_threadsafe(end(), self.loop).result(SECONDS_MAX)

    def close(self) -> None:
        async def end() -> None:
            self.server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for each in others:
                each.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await asyncio.sleep(0)

        asyncio.run_coroutine_threadsafe(end(), self.loop).result(SECONDS_MAX)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(SECONDS_MAX)
        self.loop.close()


class Reached(Noticed):
    """A person with a page, a mail address, and the server's part that tells them."""

    def __init__(self, eva: Household, server: MailServer) -> None:
        super().__init__(eva)
        self.server, self.services = server, eva.services
        self.ways = {"email": Mail(mail_server(f"smtp://127.0.0.1:{server.port}"), "bank@example.org", seconds=5.0)}
        self.services.ways = self.ways
        self.app = application(self.services, validate_responses=True)
        self.sender = NoticeSender(self.services, operations(self.services))

    def page(self, client_id: str = PAGE) -> TestClient:
        server = self.services.authorization
        token = server.grants.issue_alone(
            user_id=self.eva.user.id,
            client_id=client_id or server.clients.ensure_builtin(),
            scopes=frozenset(ALL_SCOPES),
            lifetime=timedelta(days=900),
        )
        headers = {"Authorization": f"Bearer {token}"}
        return TestClient(self.app, base_url="http://127.0.0.1:8000/api/v1", headers=headers)

    def target(self, address: str = "eva@example.org", **further: Any) -> Json:
        """A target that works."""
        answer = self.page().post("/notices/targets", json={"email": address, **further})
        assert answer.status_code == 201, answer.text
        made: Json = answer.json()
        said = self.page().post(f"/notices/targets/{made['id']}/confirmation", json={"code": self.code()})
        assert said.status_code == 200, said.text
        self.server.came.clear()
        return dict(said.json())

    def code(self) -> str:
        """The code in the latest letter that brings one."""
        codes: list[str] = [each for subject in self.subjects() for each in re.findall(r"\b\d{8}\b", subject)]
        return codes[-1]

    def set(self, **settings: Any) -> Json:
        answer = self.page().put("/notices/settings", json=settings)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def until(self, is_so: Callable[[], object]) -> None:
        """Send until it is so."""
        end = time.monotonic() + SECONDS_MAX
        while not is_so():
            assert time.monotonic() < end, "it never came to it"
            self.sender.round()
            time.sleep(0.01)

    def quiet(self) -> None:
        """Send until nothing is due and nothing under way."""
        everybody, now = self.services.everybody, self.services.clock.now
        self.sender.round()
        self.until(lambda: not self.sender.on_its_way and not deliveries.due(everybody, now=now(), but=[], limit=1))

    def mails(self, count: int) -> list[EmailMessage]:
        """The mails that have come, once they are so many, and no more are due."""
        self.until(lambda: len(self.server.came) >= count)
        self.quiet()
        assert len(self.server.came) == count
        return [message for _, _, message in self.server.came]

    def subjects(self) -> list[str]:
        self.quiet()
        return [str(message["Subject"]) for _, _, message in self.server.came]

    def passes(self, **time_: float) -> None:
        self.services.clock.offset += timedelta(**time_)

    def deliveries(self, target: Json) -> list[Json]:
        found: list[Json] = self.page().get(f"/notices/targets/{target['id']}/deliveries").json()["deliveries"]
        return found


@pytest.fixture
def server() -> Iterator[MailServer]:
    made = MailServer()
    yield made
    made.close()


@pytest.fixture
def eva(tmp_path: Path) -> Iterator[Household]:
    made = Household(tmp_path / "eva")
    yield made
    made.services.close()


@pytest.fixture
def home(eva: Household, server: MailServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reached]:
    monkeypatch.setattr(sending, "LOOK_EVERY", 0.02)
    made = Reached(eva, server)
    yield made
    made.sender.close()
