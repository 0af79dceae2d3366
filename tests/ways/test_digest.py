"""A week or month in figures, which are those of the interface: once per period, on the person's day."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from analytics.notices.hours import day_of, digest_period, next_digest, quiet_until
from tests.conftest import examples
from tests.imports.test_change_feed import GIRO, booked
from tests.ways.conftest import Reached

pytestmark = pytest.mark.requirement("notices.ways")

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_a_week_is_told_once_on_monday_at_eight_by_the_figures_of_the_interface(home: Reached) -> None:
    home.opened()
    home.target("a@example.org", wholeSentences=True)
    home.target("b@example.org")
    home.set(digest="weekly", timeZone="Europe/Berlin", kinds={"debit.new": "digest"})
    home.server.came.clear()
    weeks = [booked(f"2026-{day}", "-10.00", "Rewe", day) for day in ("10-28", "11-04", "11-11")]
    home.brings(
        GIRO,
        *weeks,
        booked("2026-11-17", "2000.00", "Lohn AG", "Gehalt"),
        booked("2026-11-18", "-40.00", "Rewe", "Einkauf"),
        booked("2026-11-19", "-19.90", "Kino", "Abo", creditor_id="DE1", mandate_reference="M1", gvc="105"),
    )
    assert home.subjects() == []
    home.becomes(date(2026, 11, 22))
    assert home.subjects() == []
    home.passes(hours=18.9)  # 06:54 on Monday in UTC
    assert home.subjects() == []
    home.passes(hours=0.2)
    assert home.subjects() == ["Your week in figures"] * 2
    by_address = {to[0]: mail.get_content().replace("\r\n", "\n") for _, to, mail in home.server.came}
    account = home.page().get("/accounts").json()["accounts"][0]["id"]
    span = {"accountIds": account, "dateFrom": "2026-11-16", "dateTo": "2026-11-22"}
    totals = home.page().get("/transactions/totals", params=span).json()
    assert (totals["income"], totals["expenses"]) == (2000.0, 59.9)
    said = by_address["a@example.org"].split("\n")
    assert said[0] == "16 November 2026 to 22 November 2026: 2,000.00 EUR in, 59.90 EUR out"
    assert said[1] == "Usually 0.00 EUR in, 10.00 EUR out"
    assert {"Lohn on 17 November 2026: 2,000.00 EUR", "Groceries: 30.00 EUR more than before"} <= set(said)
    assert any(line.startswith("Kino collected 19.90 EUR for the first time.") for line in said)
    assert "The last transaction is of 19 November 2026" in said
    assert by_address["b@example.org"].strip() == "http://127.0.0.1:8000/"
    home.set(timeZone="Europe/Lisbon")  # where it is not yet eight
    home.passes(hours=1)
    assert len(home.subjects()) == 2


def test_a_digest_that_is_late_or_of_a_week_in_which_nothing_moved_is_not_sent(home: Reached) -> None:
    home.opened()
    home.target(wholeSentences=True)
    home.set(digest="weekly")
    home.becomes(date(2026, 11, 23))
    assert home.subjects() == []
    home.brings(GIRO, booked("2026-11-24", "-5.00", "Rewe", "Brot"))
    home.becomes(date(2026, 12, 3))
    assert home.subjects() == []
    home.brings(GIRO, booked("2026-12-03", "-5.00", "Rewe", "Milch"))
    home.becomes(date(2026, 12, 8))
    assert home.subjects() == ["Your week in figures"]


@given(
    moment=st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31)),  # noqa: DTZ001 - as the store keeps it
    zone=st.sampled_from(["Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Africa/Casablanca", "UTC"]),
    begin=st.times(),
    end=st.times(),
)
@settings(max_examples=examples(60), deadline=None)
def test_it_is_quiet_until_the_wall_clock_says_otherwise(
    moment: datetime, zone: str, begin: object, end: object
) -> None:
    hours = f"{begin}"[:5], f"{end}"[:5]
    assume(hours[0] != hours[1])
    place = ZoneInfo(zone)

    def is_quiet(when: datetime) -> bool:
        wall = when.replace(tzinfo=UTC).astimezone(place).strftime("%H:%M")
        return hours[0] <= wall < hours[1] if hours[0] < hours[1] else wall >= hours[0] or wall < hours[1]

    until = quiet_until(moment, place, hours)
    assert (until is not None) == is_quiet(moment)
    if until is None:
        return
    minute, slow = timedelta(minutes=1), moment
    while is_quiet(slow):
        slow += minute
    assert moment < until
    assert abs(until - slow) <= timedelta(hours=1, minutes=1)  # where a clock is set within the quiet hours
    if abs(until - slow) > minute:
        assert (moment.replace(tzinfo=UTC).astimezone(place).utcoffset()) != (
            (moment + timedelta(days=2)).replace(tzinfo=UTC).astimezone(place).utcoffset()
        )


def test_digests_are_due_by_the_wall_clock_and_are_of_whole_periods() -> None:
    assert next_digest(at("2026-10-24T12:00"), BERLIN, "weekly") == at("2026-10-26T07:00")  # after clocks were set back
    assert next_digest(at("2026-10-26T07:00"), BERLIN, "weekly") == at("2026-11-02T07:00")
    assert next_digest(at("2026-11-30T12:00"), BERLIN, "monthly") == at("2026-12-01T07:00")
    assert next_digest(at("2026-12-01T07:00"), BERLIN, "off") is None
    assert digest_period(at("2026-11-02T07:00"), BERLIN, "weekly") == (date(2026, 10, 26), date(2026, 11, 1))
    assert digest_period(at("2027-01-01T07:00"), BERLIN, "monthly") == (date(2026, 12, 1), date(2026, 12, 31))
    assert day_of(at("2026-11-30T23:30"), BERLIN) == date(2026, 12, 1)


def test_what_is_told_by_the_digest_alone_comes_though_nothing_moved_unless_it_is_over(home: Reached) -> None:
    home.opened()
    home.target("a@example.org", wholeSentences=True)
    home.set(digest="weekly", kinds={"debit.new": "digest"})
    home.server.came.clear()
    payees = ("Kino", "Verein")
    debits = [booked("2026-11-14", "-19.90", each, "Abo", mandate_reference=each, gvc="105") for each in payees]
    home.brings(GIRO, *debits)
    [gone] = [each for each in home.notices() if each["text"].startswith("Verein")]
    assert home.page().patch(f"/notices/{gone['id']}", json={"state": "dismissed"}).status_code == 200
    home.becomes(date(2026, 11, 23))
    [(_, _, mail)] = (home.subjects(), home.server.came)[1]
    said = mail.get_content().replace("\r\n", "\n").split("\n")
    assert said[0].startswith("Kino collected 19.90 EUR for the first time.")
    assert not any("Verein" in line for line in said)
