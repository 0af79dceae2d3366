"""What is sent to a person when: each notice once, discreet, in quiet, few a day, and nothing that is over."""

from datetime import date, datetime

import pytest

from analytics.records import TransactionRecord
from handlers.operations.notices import sending
from handlers.operations.notices.sending import NoticeSender
from storage import users
from storage.changes import incarnation
from storage.notices.ways import deliveries, targets
from storage.store_facts import remember
from tests.imports.test_change_feed import GIRO, booked
from tests.ways.conftest import Reached

pytestmark = pytest.mark.requirement("notices.ways")

PAYMENT = "A payment needs a look"
NAMES = ("Kino", "Firma", "Verein", "Zeitung", "Stromwerk", "Fitness", "Garage", "Schule")


def debit(number: int, day: str = "2026-11-19") -> TransactionRecord:
    """A direct debit of a creditor that nobody has seen before."""
    mandate = f"M-{number}"
    return booked(
        day,
        f"-{number + 1}9.90",
        NAMES[number],
        "Beitrag",
        creditor_id=f"DE{number}",
        mandate_reference=mandate,
        gvc="105",
    )


def test_a_notice_is_sent_once_and_says_no_more_than_wanted(home: Reached) -> None:
    home.opened()
    home.target("a@example.org")
    home.target("b@example.org", wholeSentences=True)
    home.set(language="de")
    home.server.came.clear()
    home.brings(GIRO, debit(1))
    [notice] = home.notices()
    home.quiet()
    by_address = {to[0]: mail for _, to, mail in home.server.came}
    discreet, whole = by_address["a@example.org"], by_address["b@example.org"]
    assert discreet["Subject"] == "Eine Zahlung braucht einen Blick"
    assert discreet.get_content().strip() == f"http://127.0.0.1:8000/?notice={notice['id']}"
    assert whole["Subject"] == "Eine erste Lastschrift"
    assert "Firma hat zum ersten Mal 29,90 EUR" in whole.get_content()
    home.sender = NoticeSender(home.services, home.sender._operations)
    home.brings(GIRO, booked("2026-11-20", "-3.00", "Rewe", "Brot"))
    assert len(home.subjects()) == 2


def test_nothing_is_sent_of_what_was_there_before_or_of_what_is_switched_off(home: Reached) -> None:
    home.opened().brings(GIRO, debit(1))
    home.target()
    assert home.subjects() == []
    kinds = home.page().get("/notices/settings").json()["kinds"]
    home.set(kinds={**kinds, "debit.new": "off"})
    home.brings(GIRO, debit(2))
    home.set(kinds={"debit.new": "now"})
    assert home.subjects() == []
    home.brings(GIRO, debit(3))
    assert home.subjects() == [PAYMENT]
    home.set(quietHours={"from": "00:00", "until": "23:59"})
    home.brings(GIRO, debit(5))
    assert home.subjects() == [PAYMENT]
    home.set(quietHours=None, kinds={"debit.new": "off"})
    assert home.subjects() == [PAYMENT]
    home.set(kinds={"debit.new": "now"})
    users.set_subscription(home.services.everybody, home.eva.user.id, active=False)
    home.brings(GIRO, debit(4))
    assert home.subjects() == [PAYMENT]


def test_quiet_hours_hold_back_all_but_what_was_done_to_access(home: Reached) -> None:
    home.opened()
    made = home.target()
    home.set(quietHours={"from": "22:00", "until": "07:00"}, timeZone="Europe/Vienna")
    home.passes(hours=9.5)  # 22:30 there
    home.brings(GIRO, debit(1))
    home.services.authorization.calendar.make(home.eva.user.id)
    assert home.subjects() == ["Something about access has changed"]
    assert home.deliveries(made)[1]["nextAttemptAt"] == "2026-11-21T06:00:00.000Z"
    home.passes(hours=8.4)
    assert len(home.subjects()) == 1
    home.passes(hours=0.2)
    assert home.subjects()[1:] == [PAYMENT]


def test_whoever_switches_off_notices_of_access_is_told_of_and_uses_up_no_room_for_them(home: Reached) -> None:
    made = home.target()
    for number in range(22):
        deliveries.add(
            home.services.everybody,
            home.eva.user.id,
            target_id=made["id"],
            what="test",
            now=home.services.clock.now(),
            id_=f"{number}",
        )
    assert len(home.subjects()) == 19  # and the code
    assert [each["reason"] for each in home.deliveries(made) if each["state"] == "dropped"] == ["limit"] * 3
    home.set(kinds={"access.new": "off"})
    assert home.subjects()[19:] == ["Something about access has changed"]
    home.services.authorization.calendar.make(home.eva.user.id)
    assert len(home.subjects()) == 20


def test_the_fourth_of_a_day_says_how_many_more_and_then_it_is_silent_until_the_next(home: Reached) -> None:
    home.opened()
    home.target()
    home.brings(GIRO, *(debit(number) for number in range(5)))
    assert sorted(home.subjects()) == ["2 more notices today", PAYMENT, PAYMENT, PAYMENT]
    home.brings(GIRO, debit(6))
    assert len(home.subjects()) == 4
    home.becomes(date(2026, 11, 21))
    home.brings(GIRO, debit(7, "2026-11-20"))
    assert home.subjects()[4:] == [PAYMENT]


def test_what_is_over_or_seen_when_its_turn_comes_is_not_sent_and_what_was_sent_is_told_as_over_once(
    home: Reached,
) -> None:
    rent = booked("2026-11-16", "-700.00", "Vermieter", "Miete", gvc="117")
    home.opened(rent)
    made = home.target()
    home.set(quietHours={"from": "13:00", "until": "14:00"})  # noon in UTC is 13:00
    back = booked("2026-11-18", "700.00", "Vermieter", "Miete", gvc="159")
    home.brings(GIRO, debit(1), debit(2), back)
    [failed] = [each for each in home.notices() if each["kind"] == "payment.failed"]
    [first, _] = [each for each in home.notices() if each["kind"] == "debit.new"]
    assert home.page().patch(f"/notices/{first['id']}", json={"state": "read"}).status_code == 200
    home.set(kinds={"debit.new": "off"})
    home.passes(hours=1)
    assert home.subjects() == [PAYMENT]
    home.brings(GIRO, booked("2026-11-19", "-700.00", "Vermieter", "Miete noch einmal", gvc="117"))
    assert home.told()[0] == ("payment.failed", "over") or ("payment.failed", "over") in home.told()
    assert home.subjects() == [PAYMENT, "What needed a look is over"]
    said = {(each["what"], each["noticeId"], each["state"], each["reason"]) for each in home.deliveries(made)}
    assert ("notice", first["id"], "dropped", "over") in said
    assert ("over", failed["id"], "delivered", None) in said


@pytest.mark.parametrize("is_hidden", [False, True])
def test_that_something_is_over_is_told_as_such_and_of_accounts_that_are_shown_alone(
    home: Reached, is_hidden: bool
) -> None:
    home.opened(booked("2026-11-16", "-700.00", "Vermieter", "Miete", gvc="117"))
    home.target(wholeSentences=True)
    home.brings(GIRO, booked("2026-11-18", "700.00", "Vermieter", "Miete", gvc="159"))
    home.mails(1)
    home.do("accounts hide", account=home.account(GIRO), is_hidden=is_hidden)
    home.brings(GIRO, booked("2026-11-19", "-700.00", "Vermieter", "Miete noch einmal", gvc="117"))
    if is_hidden:
        assert home.mails(1)[0]["Subject"] == "A payment came back"
        return
    over = home.mails(2)[1]
    assert over["Subject"] == "Over: A payment came back"
    assert over.get_content().splitlines()[0] == (
        "This was told before and holds no more: 700.00 EUR to Vermieter came back on 18 November 2026. It is still to"
        " be paid, perhaps with a fee."
    )


def test_how_many_more_there_are_counts_those_that_were_not_sent_before_it_arrived(home: Reached) -> None:
    home.opened()
    home.target()
    home.server.answers["RCPT"] = ["450 later"] * 4
    home.brings(GIRO, *(debit(number) for number in range(5)))
    assert home.subjects() == []
    home.passes(minutes=1.1)
    assert sorted(home.subjects()) == ["2 more notices today", PAYMENT, PAYMENT, PAYMENT]


def test_a_letter_that_was_to_say_how_many_more_there_are_tells_its_own_notice_on_the_next_day(home: Reached) -> None:
    home.opened()
    made = home.target()
    home.server.answers["RCPT"] = [*["250 ok"] * 3, *["450 later"] * 6]
    home.brings(GIRO, *(debit(number) for number in range(4)))
    home.quiet()
    home.becomes(date(2026, 11, 21))
    home.server.answers.clear()
    assert home.subjects() == [PAYMENT] * 4
    rows = home.services.everybody.rows("SELECT content FROM notice_deliveries WHERE target_id = $1", made["id"])
    assert {row["content"] for row in rows} == {"{}"}


def test_what_a_process_with_a_clock_ahead_has_claimed_or_planned_is_due_once_the_clock_is_set(home: Reached) -> None:
    home.opened()
    home.target()
    home.set(digest="weekly", timeZone="UTC")
    home.quiet()
    everybody, now = home.services.everybody, home.services.clock.now()
    home.passes(days=365)
    home.sender.round()
    home.brings(GIRO, debit(1, "2027-11-19"))
    [due] = deliveries.due(everybody, now=home.services.clock.now(), but=[], limit=9)
    assert deliveries.claim(everybody, due, until=home.services.clock.now() + sending.LEASE) is not None
    home.passes(days=-365)
    deliveries.make_due(everybody, now=home.services.clock.now())
    assert home.subjects() == [PAYMENT]
    [row] = everybody.rows("SELECT digest_at FROM notice_settings")
    assert now < row["digest_at"] == datetime(2026, 11, 23, 8)  # noqa: DTZ001 - as the store keeps it


def test_five_refusals_in_a_row_over_an_hour_pause_a_target_until_a_test_arrives(home: Reached) -> None:
    home.opened()
    made = home.target()
    home.server.answers["RCPT"] = ["550 no"] * 5
    home.brings(GIRO, debit(1))
    for minutes in (0, 1.1, 5.1, 15.1, 45.1):
        home.passes(minutes=minutes)
        home.quiet()
    [target] = home.page().get("/notices/targets").json()["targets"]
    assert (target["state"], target["reason"]) == ("paused", "refused")
    assert home.deliveries(made)[0]["state"] == "dropped"
    assert len(home.deliveries(made)[0]["attempts"]) == 5
    home.brings(GIRO, debit(2))
    assert home.subjects() == []
    assert home.page().post(f"/notices/targets/{made['id']}/test").status_code == 202
    assert home.subjects() == ["A test"]
    assert home.page().get("/notices/targets").json()["targets"][0]["state"] == "working"


def test_a_letter_is_sent_again_if_nobody_knows_what_came_of_it_and_by_one_of_two_processes(home: Reached) -> None:
    home.opened()
    home.target()
    home.brings(GIRO, debit(1))
    everybody, now = home.services.everybody, home.services.clock.now()
    [due] = deliveries.due(everybody, now=now, but=[], limit=9)
    assert deliveries.claim(everybody, due, until=now + sending.LEASE) is not None
    assert deliveries.claim(everybody, due, until=now + sending.LEASE) is None
    assert home.subjects() == []  # the other process is at it
    home.passes(seconds=181)
    assert home.subjects() == [PAYMENT]


def test_a_restored_store_sends_nothing_that_waited_in_the_backup(home: Reached) -> None:
    home.opened()
    home.target()
    home.brings(GIRO, debit(1))
    remember(home.services.everybody, incarnation.PLACE, "elsewhere")
    incarnation.of_store(home.services.store)
    made = home.page().get("/notices/targets").json()["targets"][0]
    assert home.page().delete(f"/notices/targets/{made['id']}").status_code == 204
    remember(home.services.everybody, incarnation.PLACE, "there")
    incarnation.of_store(home.services.store)
    assert home.subjects() == []
    for table, column in targets.OF_ONE.items():
        rows = home.services.everybody.rows(f"SELECT 1 FROM {table} WHERE {column} = $1", made["id"])
        assert rows == [], table


def test_no_more_than_twenty_mails_a_day_go_to_a_person(home: Reached) -> None:
    made = home.target()
    user_id, now = home.eva.user.id, home.services.clock.now()
    for number in range(22):
        deliveries.add(home.services.everybody, user_id, target_id=made["id"], what="test", now=now, id_=f"{number}")
    assert len(home.subjects()) == 19  # and the code
    assert [each["reason"] for each in home.deliveries(made) if each["state"] == "dropped"] == ["limit"] * 3
    assert home.page().delete(f"/notices/targets/{made['id']}").status_code == 204
    assert home.subjects()[19:] == ["No more notices come here"]


def test_a_mail_server_that_is_away_uses_up_no_letters(home: Reached) -> None:
    home.opened()
    home.target()
    home.server.answers["MAIL"] = ["421 busy"] * 20
    home.brings(GIRO, *(debit(number) for number in range(3)))
    for minutes in (0, 1.1, 5.1, 15.1, 45.1, 120.1):
        home.passes(minutes=minutes)
        home.quiet()
    home.server.answers.clear()
    home.passes(minutes=360.1)
    assert home.subjects() == [PAYMENT] * 3
