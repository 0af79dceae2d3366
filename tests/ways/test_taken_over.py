"""Strangers, in payees or on somebody's page, open nothing, silence nobody, and have nobody written to unasked."""

from datetime import date

import pytest

from analytics.notices.found import INTERRUPTS
from analytics.notices.hours import counts_of
from connectors.ways.plain import plain
from handlers.operations.notices.turns import MAILS_MAX
from storage.notices.ways import settings
from tests.imports.test_change_feed import GIRO, booked
from tests.ways.conftest import Reached

pytestmark = pytest.mark.requirement("notices.ways")


def test_whoever_changes_zones_sends_no_more_codes(home: Reached) -> None:
    page, sent = home.page(), 0
    for zone in ("Etc/GMT+12", "Pacific/Kiritimati") * 4:
        home.set(timeZone=zone)
        for number in range(4):
            made = page.post("/notices/targets", json={"email": f"stranger{number}@example.org"})
            if made.status_code == 201:
                sent += 1
                page.delete(f"/notices/targets/{made.json()['id']}")
    assert sent <= 3 * 2, "the two days that there are at once"


def test_the_last_sentence_comes_however_many_mails_were_sent_before(home: Reached) -> None:
    made, user_id = home.target(), home.eva.user.id
    home.set(timeZone="UTC")
    full = {"on": home.services.clock.now().date().isoformat(), "mails": MAILS_MAX}
    home.services.of(user_id).atomically(lambda session: settings.count(session, user_id, full))
    home.page().post(f"/notices/targets/{made['id']}/test")
    assert home.subjects() == []
    home.page().delete(f"/notices/targets/{made['id']}")
    assert home.subjects() == ["No more notices come here"]


def test_a_payee_opens_nothing_in_a_letter_either(home: Reached) -> None:
    home.opened()
    home.target(wholeSentences=True)
    stranger = booked("2026-11-18", "-9.00", "www.evil.example @all", "x", creditor_id="DE98ZZZ09999999999", gvc="105")
    home.brings(GIRO, stranger)
    [mail] = home.mails(1)
    assert "Www. evil. example all collected 9.00 EUR" in mail.get_content()


def test_a_day_that_a_wrong_clock_has_counted_holds_up_nothing() -> None:
    day = date(2026, 11, 30)
    assert counts_of({"on": "2026-12-02", "codes": 3}, day) == {"on": "2026-12-02", "codes": 3}
    assert counts_of({"on": "2026-12-03", "codes": 3}, day) == {"on": "2026-11-30"}
    assert counts_of({"on": "2026-11-29", "codes": 3}, day) == counts_of({}, day) == {"on": "2026-11-30"}


def test_that_nobody_is_to_be_told_of_access_any_more_is_still_told(home: Reached) -> None:
    home.target()
    home.quiet()
    home.server.came.clear()
    home.set(kinds={**dict.fromkeys(INTERRUPTS, "off")})
    assert home.subjects() == ["Something about access has changed"]
    [latest, *_] = home.page().get("/notices?kind=access.new").json()["notices"]
    assert latest["text"] == "You are no longer told at once when something about your access changes."
    home.set(digest="weekly")
    assert len(home.subjects()) == 1, "what was off stays off without a word"
    home.set(kinds={"access.new": "now"})
    home.set(kinds={"access.new": "digest"})
    assert len(home.subjects()) == 2


@pytest.mark.parametrize(
    ("payee", "shown"),
    [
        ("@everyone", "(at)everyone"),
        ("<!channel> <@U1>", "‹!channel› ‹(at)U1›"),
        ("[pay](https://evil.example/x)", "(pay)(https: evil. example/x)"),
        ("www.evil.example", "www. evil. example"),
        ("evil。example", "evil. example"),
        ("tel:+491234 javascript:x", "tel: +491234 javascript: x"),
        ("\u202egro.live\u200b", "gro. live"),
        ("`x` <b>", "'x' ‹b›"),
        ("EUR 1,234.56 at 12:30", "EUR 1,234.56 at 12:30"),
    ],
)
def test_a_payee_opens_and_mentions_nothing(payee: str, shown: str) -> None:
    assert plain(payee) == shown


@pytest.mark.parametrize("state", ["read", "dismissed"])
def test_what_was_done_to_access_is_sent_though_somebody_has_read_or_dismissed_it(home: Reached, state: str) -> None:
    home.target(wholeSentences=True)
    home.quiet()
    home.server.came.clear()
    home.set(kinds={"access.new": "off"})
    for each in home.page().get("/notices?kind=access.new").json()["notices"]:
        assert home.page().patch(f"/notices/{each['id']}", json={"state": state}).status_code == 200
    [mail] = home.mails(1)
    assert "You are no longer told at once when something about your access changes." in mail.get_content()
