"""Letters by e-mail: over TLS, plain, one line where one line stands, and ended by one click."""

import re
import ssl
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace
from starlette.testclient import TestClient

from connectors.ways import AddressRefused, Letter, LetterOutcome
from connectors.ways.email import Mail, mail_sender, mail_server
from tests.oauth.rfc7591.test_client_documents import certificate
from tests.ways.conftest import MailServer, Reached

pytestmark = pytest.mark.requirement("notices.ways")

LETTER = Letter(
    id="ntt_1-7",
    tag="ntc_1",
    title="Kino\r\nBcc: all@example.org",
    text="Grüße\n.\nQUIT",
    link="https://bank.example.org/?notice=ntc_1",
    seconds=60,
    leave="https://bank.example.org/account/leave?of=abc",
    at=datetime.fromisoformat("2026-11-30T12:00"),
)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificate(tmp_path_factory.mktemp("mail"))


@pytest.fixture
def safe(keys: tuple[Path, Path]) -> Iterator[MailServer]:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*keys)
    made = MailServer(tls)
    yield made
    made.close()


def sent(server: MailServer, address: str = "eva@example.org", **how: object) -> LetterOutcome:
    place = mail_server(f"smtp://127.0.0.1:{server.port}")
    return Mail(place, "Our bank <bank@example.org>", **{"seconds": 5.0, **how}).send(address, LETTER)  # type: ignore[arg-type]


def test_a_letter_is_plain_and_names_itself_and_the_way_out_of_it(server: MailServer) -> None:
    assert sent(server) == LetterOutcome(state="delivered")
    [(sender, to, mail)] = server.came
    assert (sender, to, mail["From"]) == ("bank@example.org", ["eva@example.org"], "Our bank <bank@example.org>")
    assert mail["Subject"] == "Kino Bcc: all@example.org"
    assert mail["Bcc"] is None
    assert (mail["Message-ID"], mail["Date"]) == ("<ntt_1-7@example.org>", "Mon, 30 Nov 2026 12:00:00 +0000")
    assert mail["List-Unsubscribe"] == "<https://bank.example.org/account/leave?of=abc>"
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert mail.get_content_type() == "text/plain"
    long = replace(LETTER, leave="https://bank.example.org/account/leave?of=" + "a1" * 60)
    written = Mail(mail_server("smtps://mail.example.org"), "bank@example.org").written("eva@example.org", long)
    assert f"\r\nList-Unsubscribe: <{long.leave}>\r\n".encode() in written.as_bytes()
    text = mail.get_content().replace("\r\n", "\n")
    assert text == "Grüße\n.\nQUIT\n\nhttps://bank.example.org/?notice=ntc_1\n"


def test_what_is_not_on_this_machine_hears_nothing_without_tls(
    server: MailServer, safe: MailServer, keys: tuple[Path, Path]
) -> None:
    trusting = ssl.create_default_context(cafile=str(keys[0]))
    there = replace(mail_server(f"smtp://eva:s%40cret@localhost:{safe.port}"), is_here=False)
    assert Mail(there, "bank@example.org", tls=trusting).send("eva@example.org", LETTER).state == "delivered"
    assert safe.said == ["EHLO", "STARTTLS", "EHLO TLS", "AUTH TLS", "MAIL TLS", "RCPT TLS", "DATA TLS", "QUIT TLS"]
    strict = Mail(there, "bank@example.org").send("eva@example.org", LETTER)
    assert strict == LetterOutcome(state="later", reason="certificate")
    here = Mail(mail_server(f"smtp://eva:secret@localhost:{safe.port}"), "bank@example.org")
    assert here.send("eva@example.org", LETTER).state == "delivered"  # by a certificate of its own
    assert safe.said[-1] == "QUIT TLS"
    far = mail_server(f"smtp://eva:secret@127.0.0.2:{server.port}")
    assert not far.is_here
    assert "secret" not in repr(mail_server("smtps://eva:secret@mail.example.org"))
    elsewhere = replace(mail_server(f"smtp://eva:secret@127.0.0.1:{server.port}"), is_here=False)
    plain = Mail(elsewhere, "bank@example.org")
    assert plain.send("eva@example.org", LETTER) == LetterOutcome(state="later", reason="not_allowed")
    assert "AUTH" not in server.said


def test_a_server_that_refuses_is_slow_or_gone_is_told_apart(server: MailServer) -> None:
    for command, answer, state, reason in (
        ("RCPT", "550 no such mailbox", "refused", "refused"),
        ("RCPT", "451 try later", "later", "too_many"),
        ("MAIL", "552 no more", "later", "not_allowed"),
        ("DATA", "554 spam", "refused", "refused"),
        ("MAIL", "421 busy", "later", "too_many"),
    ):
        server.answers[command] = [answer]
        assert sent(server) == LetterOutcome(state=state, reason=reason), answer  # type: ignore[arg-type]
    server.answers["QUIT"] = ["500 what"]
    assert sent(server).state == "delivered"
    server.came.clear()
    server.silent.add("MAIL")
    assert sent(server, seconds=0.2) == LetterOutcome(state="later", reason="timeout")
    server.close_listening()
    assert sent(server) == LetterOutcome(state="later", reason="not_connected")
    assert server.came == []


def test_only_one_plain_address_is_taken() -> None:
    mail = Mail(mail_server("smtps://mail.example.org"), "bank@example.org")
    assert mail.checked(" eva@example.org ").sealed == "eva@example.org"
    for text in ("eva", "a@b,c@d", "<a@b.org>", "a b@c.org", "a@b.org\nBcc: c@d.org", "a..b@c.org", "@c.org", "a@-"):
        with pytest.raises(AddressRefused):
            mail.checked(text)
    for given in ("http://mail.example.org", "smtp://", "smtp://mail.example.org/inbox"):
        with pytest.raises(ValueError, match="smtp"):
            mail_server(given)
    with pytest.raises(ValueError, match="bank@"):
        mail_sender("Bank\r\nBcc: x <bank@example.org>")
    assert mail_server("smtp://eva%40example.org:x@mail.example.org").sender == "eva@example.org"
    assert mail_server("smtps://mail.example.org").sender == "bankdata@mail.example.org"


def test_one_click_ends_letters_to_one_address_and_looking_ends_none(home: Reached) -> None:
    made, other = home.target("a@example.org"), home.target("b@example.org")
    home.server.came.clear()
    assert home.page().post(f"/notices/targets/{made['id']}/test").status_code == 202
    [mail] = home.mails(1)
    link = urlsplit(re.findall("<(.*)>", str(mail["List-Unsubscribe"]))[0])
    at, browser = f"{link.path}?{link.query}", TestClient(home.app, base_url="http://127.0.0.1:8000")
    looked = browser.get(at, headers={"Accept-Language": "de"})
    assert (looked.status_code, "E-Mails beenden" in looked.text) == (200, True)
    assert len(home.page().get("/notices/targets").json()["targets"]) == 2
    for wrong in (f"{at}x", at[:-6], f"{link.path}?of=", f"{link.path}?of=%00", link.path):
        assert browser.post(wrong).status_code == 404, wrong
    form = {"files": {"List-Unsubscribe": (None, "One-Click")}}
    assert browser.post(at, **form).status_code == 200  # type: ignore[arg-type]
    assert [each["id"] for each in home.page().get("/notices/targets").json()["targets"]] == [other["id"]]
    assert browser.post(at, data={"List-Unsubscribe": "One-Click"}).status_code == 200
    home.server.came.clear()
    home.quiet()
    home.server.came.clear()
    texts = [each["text"] for each in home.page().get("/notices?kind=access.new").json()["notices"]]
    assert texts.count("An address at which you were told of notices was removed.") == 1
