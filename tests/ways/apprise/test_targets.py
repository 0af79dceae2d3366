"""An address of Apprise is a target as any other: asked first, shown by its end, and what came of letters is seen."""

import re
from collections.abc import Collection

import pytest

from connectors.ways.apprise import ByApprise
from handlers.settings import load
from handlers.work.ways import ways_of
from tests.ways.apprise.conftest import Receiver
from tests.ways.conftest import Json, Reached

pytestmark = pytest.mark.requirement("notices.apprise")
URL = "ntfys://tk_secret@ntfy.test/bills"


def test_an_address_works_by_the_code_that_was_sent_there_and_what_the_receiver_says_is_seen(
    home: Reached, by_tls: tuple[ByApprise, Receiver], caplog: pytest.LogCaptureFixture
) -> None:
    way, receiver = by_tls
    home.services.ways = {**home.ways, "apprise": way}
    receiver.heard.clear()
    page = home.page()
    made: Json = page.post("/notices/targets", json={"url": URL}).json()
    assert (made["way"], made["scheme"], made["last"], made["state"]) == ("apprise", "ntfys", "ills", "unconfirmed")
    home.quiet()
    [(_, headers, said)] = receiver.heard
    assert headers["authorization"] == "Bearer tk_secret"
    where, code = f"/notices/targets/{made['id']}", re.findall(r"\d{8}", str(said["title"]))[0]
    assert page.post(f"{where}/confirmation", json={"code": code}).json()["state"] == "working"

    def tested(answer: tuple[int, dict[str, str], bytes] | None) -> tuple[str, str | None, str]:
        receiver.answer = answer
        page.post(f"{where}/test")
        home.until(lambda: home.deliveries(made)[0]["attempts"])
        home.quiet()
        receiver.answer = None
        latest, [target] = home.deliveries(made)[0], page.get("/notices/targets").json()["targets"]
        return latest["state"], latest["reason"], target["state"]

    assert tested(None) == ("delivered", None, "working")
    assert tested((429, {"Retry-After": "600"}, b"{}")) == ("waiting", "too_many", "working")
    assert tested((302, {"Location": "http://127.0.0.1/"}, b"")) == ("waiting", "refused", "working")
    assert tested((401, {}, b"{}")) == ("failed", "not_allowed", "paused")
    assert tested(None) == ("delivered", None, "working")
    kept = [home.services.everybody.rows(f"SELECT * FROM {each}") for each in ("notice_targets", "notice_deliveries")]
    assert "tk_secret" not in str(kept) + caplog.text


def test_an_address_that_cannot_be_written_to_is_refused_in_one_sentence(
    home: Reached, by_tls: tuple[ByApprise, Receiver]
) -> None:
    home.services.ways = {"apprise": by_tls[0]}
    for url, sentence in (
        ("json://ntfy.test/", "This server sends to addresses of these kinds alone: discord, evil, gotify"),
        ("ntfys://ntfy.test/bills?redirect=yes", "Nothing but priority, tags and channel may follow the question mark"),
        ("ntfys://ntfy.test/one/two", "Apprise knows no such address, or it has more than one receiver"),
    ):
        answer = home.page().post("/notices/targets", json={"url": url})
        assert (answer.status_code, answer.json()["error"][: len(sentence)]) == (400, sentence)
    assert home.page().get("/notices/targets").json()["targets"] == []


def test_the_way_is_there_where_apprise_is_installed_and_not_switched_off(
    home: Reached, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ways(**environment: str) -> Collection[str]:
        return ways_of(load(environment), home.services.everybody, home.services.connection_keys).keys()

    assert "apprise" in ways()
    assert "apprise" not in ways(BANKDATA_NOTICE_TARGETS="off")
    monkeypatch.setattr("connectors.ways.apprise.find_spec", lambda _: None)
    assert "apprise" not in ways()
