"""What the calendar shows of whose payments, and that it is iCalendar (RFC 5545) to the octet."""

from datetime import date, timedelta

import pytest

from analytics.periods import last_of_twelve_months
from analytics.recurring.history import due_days
from handlers.calendar.icalendar import DuePayment, calendar_text
from tests.calendar.conftest import events_of, lines_of, pays, read, subscribed
from tests.explanations.conftest import Holder, Service
from tests.simplefin.conftest import bare

pytestmark = pytest.mark.requirement("calendar.payments")

MONTHLY = ("2026-06-15", "2026-07-15", "2026-08-15", "2026-09-15", "2026-10-15", "2026-11-15")


@pytest.mark.long
def test_each_payment_stands_on_its_days_of_the_next_twelve_months(service: Service, holder: Holder) -> None:
    pays(holder, "Streambox", *MONTHLY)
    (listed,) = holder.get("/subscriptions/details")["subscriptions"]
    events = read(service, subscribed(service, holder.user.id))
    days = [date(2026, 12, 15), *(date(2027, month, 15) for month in range(1, 12))]
    assert events == [
        {
            "UID": f"{listed['id']}-{day:%Y%m%d}",
            "DTSTAMP": "20261115T000000Z",
            "DTSTART;VALUE=DATE": f"{day:%Y%m%d}",
            "DTEND;VALUE=DATE": f"{day + timedelta(days=1):%Y%m%d}",
            "SUMMARY": "Streambox: 12.99 EUR",
            "TRANSP": "TRANSPARENT",
        }
        for day in days
    ]
    assert listed["comingCharges"] == ["2026-12-15T00:00:00.000Z"]


def test_an_event_keeps_its_uid_when_a_charge_comes_at_another_price_and_day(service: Service) -> None:
    user = service.newcomer()
    pays(user, "Streambox", *MONTHLY[:-1])
    path = subscribed(service, user.user.id)
    before = {event["UID"]: event for event in read(service, path)}
    pays(user, "Streambox", "2026-11-17", amount="-14.99")
    after = {event["UID"]: event for event in read(service, path)}
    assert before.keys() >= after.keys()
    assert len(after) == 12
    assert {event["SUMMARY"] for event in after.values()} == {"Streambox: 14.99 EUR"}


def test_what_is_due_today_is_there_and_the_same_day_next_year_is_not(service: Service) -> None:
    user = service.newcomer()
    pays(user, "Turnhalle", *(f"2026-{month:02}-20" for month in range(5, 11)))
    days = [event["DTSTART;VALUE=DATE"] for event in read(service, subscribed(service, user.user.id))]
    assert (len(days), days[0], days[-1]) == (12, "20261120", "20271020")


def test_where_nothing_is_due_there_is_one_component_that_is_no_event(service: Service, holder: Holder) -> None:
    answer = bare(service).get(subscribed(service, holder.user.id))
    lines = lines_of(answer.content)
    assert events_of(answer.content) == []
    assert [line for line in lines if line.startswith(("BEGIN:", "END:"))] == [
        *("BEGIN:VCALENDAR", "BEGIN:VTIMEZONE", "BEGIN:STANDARD", "END:STANDARD", "END:VTIMEZONE", "END:VCALENDAR")
    ]


def test_the_demos_calendar_says_what_its_details_say(service: Service) -> None:
    user_id = service.services.everybody.rows("SELECT id FROM users WHERE name = 'demo'")[0]["id"]
    client = service.client(user_id)
    ids = ",".join(each["id"] for each in client.get("/accounts").json()["accounts"])
    asked = {"accountIds": ids, "status": "ongoing"}
    listed = client.get("/subscriptions/details", params=asked).json()["subscriptions"]
    assert listed
    due = [(each["id"], day[:10].replace("-", "")) for each in listed for day in each["comingCharges"]]
    events = read(service, subscribed(service, user_id))
    uids = [event["UID"] for event in events]
    assert len(set(uids)) == len(uids)
    assert {f"{id_}-{day}" for id_, day in due if day >= "20261120"} <= set(uids)
    assert {uid.rpartition("-")[0] for uid in uids} == {each["id"] for each in listed}
    days = [event["DTSTART;VALUE=DATE"] for event in events]
    assert days == sorted(days)
    assert "20261120" <= days[0] <= days[-1] <= "20271119"


@pytest.mark.parametrize("length", [*range(50, 90), 148, 149, 150, 500])
@pytest.mark.parametrize("letter", ["a", "ß", "€", "🎬"])
def test_long_lines_are_folded_between_characters(letter: str, length: int) -> None:
    day = date(2026, 12, 31)
    (event,) = events_of(calendar_text([DuePayment(id="sub_1", day=day, summary=letter * length, known_since=day)]))
    assert event["SUMMARY"] == letter * length
    assert event["DTEND;VALUE=DATE"] == "20270101"


def test_what_means_something_in_a_calendar_is_escaped() -> None:
    day = date(2026, 12, 1)
    (event,) = events_of(
        calendar_text([DuePayment(id="sub_1", day=day, summary="A\\B; C, D: 1.00 EUR", known_since=day)])
    )
    assert event["SUMMARY"] == "A\\\\B\\; C\\, D: 1.00 EUR"


def test_no_bank_text_begins_a_line_of_its_own(service: Service) -> None:
    user = service.newcomer()
    pays(user, "Shop\r\nEND:VEVENT\nX: a;b,c\u202e", *MONTHLY)
    events = read(service, subscribed(service, user.user.id))
    assert len(events) == 12
    assert {event["SUMMARY"] for event in events} == {"Shop END:VEVENT X: a\\;b\\,c: 12.99 EUR"}


@pytest.mark.parametrize(
    ("frequency", "charged", "first", "count"),
    [
        ("weekly", ["2026-10-30", "2026-11-06", "2026-11-13"], "2026-11-20", 53),
        ("biweekly", ["2026-10-16", "2026-10-30", "2026-11-13"], "2026-11-27", 26),
        ("monthly", ["2026-08-31", "2026-09-30", "2026-10-31"], "2026-11-30", 12),
        ("monthly", ["2026-11-18", "2026-09-18", "2026-10-18"], "2026-12-18", 12),
        ("monthly", ["2026-08-18", "2026-09-18", "2026-10-18"], "2026-12-18", 12),  # that of two days ago is not told
        ("quarterly", ["2026-03-20", "2026-06-20", "2026-09-20"], "2026-12-20", 4),
        ("yearly", ["2024-11-19", "2025-11-19"], "2027-11-19", 1),
        ("yearly", ["2024-11-20", "2025-11-20"], "2026-11-20", 1),
    ],
)
def test_each_rhythm_goes_on_for_twelve_months(frequency: str, charged: list[str], first: str, count: int) -> None:
    today = date(2026, 11, 20)
    days = due_days(
        [date.fromisoformat(day) for day in charged],
        frequency=frequency,
        today=today,
        until=last_of_twelve_months(today),
    )
    assert (days[0].isoformat(), len(days)) == (first, count)
    assert days == sorted(set(days))


@pytest.mark.parametrize(
    ("today", "last"),
    [
        ("2026-11-20", "2027-11-19"),
        ("2027-12-01", "2028-11-30"),
        ("2028-02-29", "2029-02-27"),
        ("2027-03-01", "2028-02-29"),
    ],
)
def test_twelve_months_end_the_day_before_the_same_one(today: str, last: str) -> None:
    assert last_of_twelve_months(date.fromisoformat(today)).isoformat() == last
