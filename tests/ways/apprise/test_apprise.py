"""Addresses of strangers in the hands of strangers' code: what arrives, what is refused, what stays in the process."""

import threading
import time
from contextlib import suppress
from datetime import datetime

import psutil
import pytest

from connectors.ways import AddressRefused, Letter, LetterOutcome
from connectors.ways import apprise as way_by_apprise
from connectors.ways.apprise import ByApprise
from tests.ways.apprise.conftest import Receiver
from tests.ways.apprise.named import TRIED

Way = tuple[ByApprise, Receiver]
Heard = tuple[str, dict[str, str], dict[str, object]]
TELEGRAM = "tgram://123456789:abcdefg_hijklmnop_AbCdEf_ghijklmnop/4711"
LINK = "https://bank.example.org/#/notices/x"


def letter(text: str = "A payment needs a look", *, is_silent: bool = False) -> Letter:
    return Letter(
        id="x",
        tag="x",
        title="Banking Data Service",
        text=text,
        link=LINK,
        seconds=60,
        is_silent=is_silent,
        at=datetime(2026, 3, 1),  # noqa: DTZ001
    )


def sent(way: Way, url: str, given: Letter | None = None) -> tuple[LetterOutcome, list[Heard]]:
    """What came of a letter, and what the receiver heard."""
    way[1].heard.clear()
    return way[0].send(way[0].checked(url).sealed, given or letter()), way[1].heard


@pytest.mark.requirement("notices.apprise")
def test_services_that_read_strictly_take_a_letter_as_plain_text(by_tls: Way) -> None:
    said = f"A payment needs a look\n{LINK}"
    outcome, heard = sent(by_tls, "ntfys://ntfy.test/topic?priority=high&tags=bank")
    assert outcome == LetterOutcome(state="delivered")
    path, headers, body = heard[0]
    assert (path, body) == ("/", {"topic": "topic", "title": "Banking Data Service", "message": said})
    assert (headers["x-priority"], headers["x-tags"]) == ("high", "bank")
    assert not headers.keys() & {"x-markdown", "x-icon", "x-click"}

    outcome, heard = sent(by_tls, "gotifys://gotify.test/AbCdEfGhIjKlMnO", letter(is_silent=True))
    assert outcome == LetterOutcome(state="delivered")
    assert heard[0][2] == {"priority": 0, "title": "Banking Data Service", "message": said}

    outcome, heard = sent(by_tls, TELEGRAM, letter("1 < 2 & 3"))
    assert outcome == LetterOutcome(state="delivered")
    assert heard[0][2]["text"] == f"Banking Data Service\r\n1 &lt; 2 &amp; 3\r\n{LINK}"

    outcome, heard = sent(by_tls, "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js")
    assert outcome == LetterOutcome(state="delivered")
    assert heard[0][2]["content"] == f"Banking Data Service\r\n{said}"

    outcome, heard = sent(by_tls, "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/general")
    assert outcome == LetterOutcome(state="delivered")

    assert repr(said)[1:-1] in str(heard[0][2])

    outcome, heard = sent(by_tls, "matrixs://token@matrix.test/!room")
    assert outcome == LetterOutcome(state="delivered")
    assert heard[-1][2] == {"msgtype": "m.text", "body": f"Banking Data Service\n{said}"}


@pytest.mark.requirement("notices.apprise")
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ((429, {"Retry-After": "30"}, b"{}"), LetterOutcome(state="later", reason="too_many", wait=30)),
        ((429, {"Retry-After": "9" * 400}, b"{}"), LetterOutcome(state="later", reason="too_many", wait=86_400)),
        ((503, {}, b"down"), LetterOutcome(state="later", reason="no_answer")),
        ((401, {}, b"{}"), LetterOutcome(state="paused", reason="not_allowed")),
        ((403, {}, b"{}"), LetterOutcome(state="paused", reason="not_allowed")),
        ((404, {}, b"{}"), LetterOutcome(state="refused", reason="gone")),
        ((400, {}, b"{}"), LetterOutcome(state="refused", reason="refused")),
        ((302, {"Location": "/elsewhere"}, b""), LetterOutcome(state="refused", reason="refused")),
        ((307, {"Location": "http://127.0.0.1/"}, b""), LetterOutcome(state="refused", reason="refused")),
    ],
)
def test_what_the_receiver_says_becomes_a_word_of_ours(
    by_tls: Way, answer: tuple[int, dict[str, str], bytes], outcome: LetterOutcome
) -> None:
    by_tls[1].answer = answer
    try:
        assert sent(by_tls, "ntfys://ntfy.test/topic")[0] == outcome
    finally:
        by_tls[1].answer = None
    assert len(by_tls[1].heard) == 1, "no redirect is followed"


@pytest.mark.requirement("notices.apprise")
@pytest.mark.parametrize(
    "url",
    [
        {"subscription": "x"},
        "",
        "ntfys://",
        "NTFYS://ntfy.test/topic",
        "https://ntfy.sh/topic",
        "jsons://ntfy.test/topic",
        "dbus://",
        "windows://",
        "syslog://",
        "blink1://",
        "file:///etc/passwd",
        "ntfys://ntfy.test/one/two",
        "ntfys://ntfy.test/one,two",
        "ntfys://ntfy.test/topic\nX-Evil: 1",
        "ntfys://ntfy.test/" + "t" * 1001,
        "ntfys://ntfy.test/topic?redirect=yes",
        "ntfys://ntfy.test/topic?%72edirect=yes",
        "ntfys://ntfy.test/topic?priority=high&verify=no",
        "ntfys://ntfy.test/topic?priority=high%0d%0aX-Evil:1",
        "ntfys://ntfy.test/topic?tags=a?redirect=yes",
        "ntfys://ntfy.test/topic?attach=file:///etc/passwd",
        "ntfys://ntfy.test/topic?actions=http,x,http://127.0.0.1",
        "ntfys://ntfy.test/topic?retry=5",
        "tgram://123456789:abcdefg_hijklmnop_AbCdEf_ghijklmnop/",
        TELEGRAM + "?template=/etc/passwd",
        "matrixs://user:secret@matrix.test",
        "matrixs://user:secret@matrix.test/!one/!two",
        "gotifys://gotify.test/short?+X-Evil=1",
        "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js?ping=everyone",
    ],
)
def test_an_address_that_wants_more_than_to_be_written_to_is_refused(by_tls: Way, url: object) -> None:
    by_tls[1].heard.clear()
    with pytest.raises(AddressRefused):
        by_tls[0].checked(url)
    assert by_tls[1].heard == []


@pytest.mark.requirement("notices.apprise")
@pytest.mark.parametrize(
    "url",
    [
        "ntfys://10.0.0.1/topic",
        "ntfys://169.254.169.254/latest",
        "ntfys://127.0.0.1/topic",
        "ntfys://2130706433/topic",
        "ntfys://0.0.0.0/topic",
        "ntfys://inside.test/topic",
        "ntfys://eva:secret@inside.test/topic",
        "matrixs://user:secret@inside.test/!room",
    ],
)
def test_no_address_leads_inside(by_tls: Way, url: str) -> None:
    assert sent(by_tls, url) == (LetterOutcome(state="refused", reason="address_not_allowed"), [])


@pytest.mark.requirement("notices.apprise")
def test_a_name_that_changes_between_two_requests_leads_nowhere_else(by_tls: Way) -> None:
    outcome, heard = sent(by_tls, "matrixs://user:secret@twice.test/!room")
    assert outcome == LetterOutcome(state="refused", reason="address_not_allowed")
    assert [path for path, *_ in heard] == ["/.well-known/matrix/client"]


@pytest.mark.requirement("notices.apprise")
def test_a_receiver_names_no_other_machine(by_tls: Way) -> None:
    by_tls[1].answer = (200, {}, b'{"m.homeserver": {"base_url": "https://inside.test"}}')
    try:
        outcome, heard = sent(by_tls, "matrixs://user:secret@matrix.test/!room")
    finally:
        by_tls[1].answer = None
    assert outcome == LetterOutcome(state="refused", reason="address_not_allowed")
    assert {headers["host"] for _, headers, _ in heard} == {"matrix.test"}


@pytest.mark.requirement("notices.apprise")
def test_a_sign_in_that_fails_makes_no_account(by_tls: Way) -> None:
    outcome, heard = sent(by_tls, "matrixs://user:wrong@matrix.test/!room")
    assert outcome == LetterOutcome(state="paused", reason="not_allowed")
    assert [path.rpartition("/")[2] for path, *_ in heard] == ["client", "login"]


@pytest.mark.requirement("notices.apprise")
def test_in_the_clear_is_for_the_networks_of_the_operator_alone(in_clear: Way, by_tls: Way) -> None:
    assert sent(in_clear, "ntfy://ntfy.test/topic")[0].state == "delivered"
    assert sent(in_clear, "ntfy://9.9.9.9/topic")[0] == LetterOutcome(state="refused", reason="address_not_allowed")
    assert sent(in_clear, "ntfys://ntfy.test/topic")[0] == LetterOutcome(state="later", reason="certificate")
    assert sent(by_tls, "ntfys://unnamed.test/topic")[0] == LetterOutcome(state="later", reason="certificate")


@pytest.mark.requirement("notices.apprise")
def test_code_of_a_plugin_can_do_nothing_else(by_tls: Way) -> None:
    assert [each for each in TRIED if sent(by_tls, "evil://here", letter(each))[0].state == "delivered"] == ["nothing"]


@pytest.mark.requirement("notices.apprise")
def test_who_is_slow_is_ended_while_others_go_on_and_the_address_shows_nowhere(
    by_tls: Way, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(way_by_apprise, "SECONDS_MAX", 1)
    waiting = by_tls[1].wait = threading.Event()
    outcomes: list[LetterOutcome] = []
    slow = threading.Thread(target=lambda: outcomes.append(sent(by_tls, "ntfys://tk_secret@ntfy.test/hidden")[0]))
    slow.start()
    while not by_tls[1].heard:
        time.sleep(0.01)
    by_tls[1].wait = None
    assert sent(by_tls, "gotifys://gotify.test/AbCdEfGhIjKlMnO")[0].state == "delivered"
    told = [caplog.text]
    for each in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            told += [*each.cmdline(), *each.environ().values()]
    slow.join(30)
    waiting.set()
    assert outcomes == [LetterOutcome(state="later", reason="timeout")]
    assert not [each for each in told if "hidden" in each or "tk_secret" in each]


@pytest.mark.requirement("notices.apprise")
def test_a_process_that_is_gone_begins_anew(by_tls: Way) -> None:
    process = by_tls[0]._process._process
    assert process is not None
    process.kill()
    process.wait()
    assert sent(by_tls, "ntfys://ntfy.test/topic")[0].state == "delivered"


@pytest.mark.requirement("notices.apprise")
def test_an_answer_without_end_fills_no_memory(by_tls: Way) -> None:
    by_tls[1].answer = (500, {}, b"[" * (8 << 20))
    try:
        assert sent(by_tls, "ntfys://ntfy.test/topic")[0] == LetterOutcome(state="later", reason="no_answer")
    finally:
        by_tls[1].answer = None
