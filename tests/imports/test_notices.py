"""What is worth telling is told once per cause, in time, to whom it concerns; and nothing is told of old data."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from handlers.work.sync.detection import detect_after_import
from handlers.work.sync.notices.ledgers import look_at_ledgers
from storage import backup, connections, users
from storage.events import outbox
from storage.notices import looks
from storage.oauth.grants import EVERYTHING
from storage.undo_and_merge import undoable_imports
from tests.imports.household import Household
from tests.imports.mirrors import Served
from tests.imports.test_change_feed import CARD, GIRO, booked
from tests.imports.test_recurring_events import Payments

TODAY = date(2026, 11, 20)
GYM = {"creditor_id": "DE98ZZZ09999999999", "mandate_reference": "FIT-2026-117", "gvc": "105"}


class Noticed(Payments):
    """A household whose account has been known for months, and what it is told."""

    def opened(self, *records: TransactionRecord) -> "Noticed":
        self.brings(GIRO, booked("2026-06-01", "-5.00", "Rewe", "Brot"), *records)
        return self

    def told(self) -> list[tuple[str, str]]:
        """Kind and state of each notice but those that sort bookings, the latest first."""
        return [(each["kind"], each["state"]) for each in self.notices()]

    def notices(self, **query: Any) -> list[dict[str, Any]]:
        answer = Served(self.eva).client().get("/notices", params=query)
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["notices"]
        return [each for each in found if not each["kind"].startswith("booking.")]

    def messages(self) -> list[tuple[str, str]]:
        """The events of notices so far."""
        every = outbox.after(self.eva.services.everybody, self.eva.user.id, -1, limit=1000)
        told = [(each.type, each.data["kind"]) for each in every if each.type.startswith("notice.")]
        return [each for each in told if not each[1].startswith("booking.")]


@pytest.fixture
def home(eva: Household) -> Noticed:
    return Noticed(eva)


def gym(day: str, amount: str = "-29.90", **further: str) -> TransactionRecord:
    return booked(day, amount, "Fitnesswelt", "Beitrag", **{**GYM, **further})


@pytest.mark.requirement("notices.kinds")
def test_a_first_direct_debit_is_told_with_the_day_until_which_it_can_be_returned(home: Noticed) -> None:
    home.opened().brings(GIRO, gym("2026-11-18"))
    [notice] = home.notices()
    assert (notice["kind"], notice["interrupts"], notice["day"]) == ("debit.new", True, "2026-11-18")
    assert (notice["returnableUntil"], notice["amount"], notice["step"]) == ("2027-01-13", 29.9, "look")
    assert notice["text"] == (
        "Fitnesswelt collected 29.90 EUR for the first time. You can return it through your bank until 13 January 2027."
    )
    home.do("notices list", state="open")
    assert f"debit.new: {notice['text']}" in home.eva.lines[-1]
    home.becomes(date(2026, 12, 19))
    home.brings(
        GIRO, gym("2026-12-18"), booked("2026-12-18", "-9.00", "Netto", "ELV", gvc="107", mandate_reference="E1")
    )
    assert home.told() == [("debit.new", "open")]
    home.brings(
        GIRO,
        booked(
            "2026-12-18",
            "-80.00",
            "Lieferant",
            "Ware",
            **{**GYM, "gvc": "104", "creditor_id": "DE7", "mandate_reference": "LIEF-1"},
        ),
    )
    company = home.notices()[0]
    assert company["returnableUntil"] is None
    assert company["text"].endswith("by company debit, which cannot be returned.")


@pytest.mark.requirement("notices.once")
def test_nothing_is_told_of_what_was_there_when_an_account_is_seen_first_or_comes_late(home: Noticed) -> None:
    home.brings(GIRO, booked("2026-06-01", "-5.00", "Rewe", "Brot"), gym("2026-11-18"))
    home.brings(GIRO, booked("2026-11-05", "-50.00", "Zeitung", "Abo", creditor_id="DE1", mandate_reference="ZEITUNG"))
    assert home.told() == []
    assert home.messages() == []


@pytest.mark.requirement("notices.once")
def test_a_cause_is_told_once_through_undo_import_again_and_dismissal(home: Noticed) -> None:
    home.opened()
    home.bring(GIRO, gym("2026-11-18"), of=home.files)
    look(home)
    [notice] = home.notices()
    [_, imported] = undoable_imports.of_user(home.eva.services.everybody, home.eva.user.id)[-2:]
    home.eva.undo(imported.job_id)
    look(home)
    assert home.told() == [("debit.new", "withdrawn")]
    home.bring(GIRO, gym("2026-11-18"), of=home.files)
    look(home)
    [again] = home.notices()
    assert (again["id"], again["state"]) == (notice["id"], "open")
    assert home.messages() == [("notice.new", "debit.new"), ("notice.over", "debit.new")]
    client = Served(home.eva).client()
    assert client.patch(f"/notices/{notice['id']}", json={"state": "dismissed"}).json()["state"] == "dismissed"
    home.brings(GIRO, booked("2026-11-19", "-3.00", "Rewe", "Brot"))
    assert home.told() == [("debit.new", "dismissed")]
    assert len(home.messages()) == 2


def look(home: Noticed) -> None:
    today = home.eva.services.clock.today()
    detect_after_import(home.eva.services.everybody, [home.eva.user.id], today=today)


@pytest.mark.requirement("notices.kinds")
def test_the_same_charge_twice_is_told_where_that_is_unusual(home: Noticed) -> None:
    def card(day: str, name: str = "Kino", amount: str = "-24.00", purpose: str = "Kauf") -> TransactionRecord:
        return booked(day, amount, name, purpose, gvc="106")

    usual = [card(f"2026-{month:02}-09", amount=f"-{month}.00") for month in range(5, 11)]
    trips = [card(f"2026-{month:02}-12", "Bahn", "-11.00", each) for month in range(6, 11) for each in ("hin", "her")]
    cash = [card(f"2026-{month:02}-03", "Sparkasse", "-50.00", "Geldautomat") for month in range(6, 11)]
    home.opened(*usual, *trips, *cash)
    home.brings(GIRO, card("2026-11-17"), card("2026-11-18", purpose="Kauf 2"), card("2026-11-18", "Bahn", "-11.00"),
                card("2026-11-18", "Bahn", "-11.00", "zurück"),
                *(card("2026-11-18", "Sparkasse", "-50.00", f"Geldautomat {n}") for n in range(2)))  # fmt: skip
    [notice] = home.notices()
    assert (notice["kind"], len(notice["transactionIds"])) == ("charge.double", 2)
    assert notice["text"] == "Kino charged 24.00 EUR on 17 November 2026 and again on 18 November 2026."
    home.brings(GIRO, booked("2026-11-20", "24.00", "Kino", "Erstattung", gvc="190"))
    assert home.told() == [("charge.double", "over")]


@pytest.mark.requirement("notices.kinds")
def test_a_payment_that_came_back_is_told_until_it_is_paid_again(home: Noticed) -> None:
    rent = booked("2026-11-16", "-700.00", "Vermieter", "Miete", gvc="117")
    home.opened(rent).brings(GIRO, booked("2026-11-18", "700.00", "Vermieter", "Miete", gvc="159"))
    [notice] = home.notices()
    assert (notice["kind"], notice["amount"], notice["step"]) == ("payment.failed", 700.0, "pay")
    home.brings(GIRO, booked("2026-11-19", "-700.00", "Vermieter", "Miete noch einmal", gvc="117"))
    assert home.told() == [("payment.failed", "over")]
    refund = booked("2026-11-19", "20.00", "Schuhhaus", "Erstattung")
    by_herself = booked("2026-11-19", "29.90", "Fitnesswelt", "Rueckgabe MD06", gvc="181")
    home.brings(GIRO, refund, by_herself)
    assert len(home.told()) == 1


@pytest.mark.requirement("notices.kinds")
def test_a_price_that_rose_is_told_as_new_once_it_came_twice(home: Noticed) -> None:
    home.becomes(date(2026, 11, 1))
    past = [booked(f"2026-{month:02}-15", "-12.99", "Streambox", "Abo") for month in range(5, 11)]
    home.opened(*past)
    home.becomes(date(2026, 11, 16))
    home.brings(GIRO, booked("2026-11-15", "-14.99", "Streambox", "Abo"))
    [notice] = home.notices(kind="price.raised")
    assert notice["text"] == "Streambox charged 14.99 EUR, more than usual. It was 12.99 EUR before."
    home.becomes(date(2026, 12, 16))
    home.brings(GIRO, booked("2026-12-15", "-14.99", "Streambox", "Abo"))
    [same] = home.notices(kind="price.raised")
    assert same["id"] == notice["id"]
    assert same["text"] == "Streambox now costs 14.99 EUR instead of 12.99 EUR. That is 24.00 EUR more a year."
    assert [kind for _, kind in home.messages()].count("price.raised") == 1


def paid(*months: int, day: int = 27) -> Sequence[TransactionRecord]:
    return [booked(f"2026-{month:02}-{day}", "2500.00", "Arbeitgeber", "Gehalt", gvc="153") for month in months]


@pytest.mark.requirement("notices.kinds")
def test_pay_that_does_not_come_is_told_after_its_grace_and_over_when_it_comes(home: Noticed) -> None:
    home.becomes(date(2026, 10, 28))
    home.opened(*paid(7, 8, 9, 10))
    home.becomes(date(2026, 12, 1))
    home.brings(GIRO, booked("2026-12-01", "-4.00", "Rewe", "Brot"))
    assert home.told() == []
    home.becomes(date(2026, 12, 4))
    home.brings(GIRO, booked("2026-12-04", "-4.00", "Rewe", "Brot"))
    [notice] = home.notices()
    assert (notice["kind"], notice["dueOn"], notice["amount"]) == ("income.late", "2026-11-27", 2500.0)
    home.becomes(date(2026, 12, 5))
    home.brings(GIRO, booked("2026-12-05", "2500.00", "Arbeitgeber", "Gehalt", gvc="153"))
    assert home.told() == [("income.late", "over")]
    assert home.messages() == [("notice.new", "income.late"), ("notice.over", "income.late")]


def at(home: Noticed, balance: str, *records: TransactionRecord) -> None:
    day = home.eva.services.clock.today()
    said = StatementRecord(closing=Decimal(balance), closing_date=day)
    home.bring(GIRO, *records, statement=said)
    look(home)


@pytest.mark.requirement("notices.kinds")
def test_an_account_that_known_payments_leave_short_is_told_ten_days_ahead_and_not_before(home: Noticed) -> None:
    home.becomes(date(2026, 11, 1))
    rent = [booked(f"2026-{month:02}-20", "-800.00", "Vermieter", "Miete", gvc="117") for month in range(6, 11)]
    bread = [booked(f"2026-10-{day:02}", "-6.00", "Rewe", "Brot", gvc="106") for day in range(2, 30, 3)]
    home.opened(*paid(6, 7, 8, 9, 10), *rent, *bread)
    home.becomes(date(2026, 11, 9))
    at(home, "650.00", booked("2026-11-08", "-6.00", "Rewe", "Brot"))
    assert home.told() == []
    home.becomes(date(2026, 11, 11))
    home.eva.services.scheduler._each_round()
    [notice] = home.notices()
    assert (notice["kind"], notice["dueOn"], notice["amount"]) == ("overdraft.ahead", "2026-11-20", 150.0)
    assert notice["text"] == "Vermieter is due on 20 November 2026: 800.00 EUR. 150.00 EUR will be missing."
    home.becomes(date(2026, 11, 12))
    at(home, "1650.00", booked("2026-11-12", "1000.00", "Oma", "Geschenk"))
    assert home.told() == [("overdraft.ahead", "over")]


@pytest.mark.requirement("notices.state")
def test_a_consent_that_ends_and_a_bank_that_needs_its_person_are_told_and_over_when_renewed(home: Noticed) -> None:
    home.opened()
    services, user_id = home.eva.services, home.eva.user.id
    ends = services.clock.now() + timedelta(days=6)
    connections.keep_consent(services.everybody, user_id, home.live.id, expires_at=ends)
    services.everybody.changes(user_id)
    assert home.told() == [("consent.ending", "open")]
    services.clock.offset += timedelta(days=5, hours=12)
    services.everybody.changes(user_id)
    assert home.messages() == [("notice.new", "consent.ending")] * 2
    services.everybody.atomically(lambda session: connections.need_user(session, user_id, home.live.id))
    assert home.told() == [("sync.failing", "open"), ("consent.ending", "over")]
    renewed = connections.find(services.everybody, user_id, home.live.id)
    assert renewed is not None
    services.everybody.atomically(lambda session: connections.renew(session, renewed, settings={}))
    assert home.told() == [("sync.failing", "over"), ("consent.ending", "over")]


@pytest.mark.requirement("notices.state")
def test_what_is_there_after_a_restore_was_told_before_it(home: Noticed) -> None:
    home.opened()
    services, user_id = home.eva.services, home.eva.user.id
    looks.past_all(services.everybody)
    ends = services.clock.now() + timedelta(days=6)
    connections.keep_consent(services.everybody, user_id, home.live.id, expires_at=ends)
    services.everybody.changes(user_id)
    assert (home.told(), home.messages()) == ([], [])


@pytest.mark.requirement("notices.state")
def test_an_earlier_stage_of_a_consent_is_not_told_again(home: Noticed) -> None:
    home.opened()
    services, user_id = home.eva.services, home.eva.user.id
    ends = services.clock.now() + timedelta(hours=20)
    connections.keep_consent(services.everybody, user_id, home.live.id, expires_at=ends)
    services.everybody.changes(user_id)
    connections.keep_consent(services.everybody, user_id, home.live.id, expires_at=ends + timedelta(hours=6))
    services.everybody.changes(user_id)
    assert home.messages() == [("notice.new", "consent.ending")]


@pytest.mark.requirement("notices.state")
def test_a_bank_with_a_hidden_account_is_told_of(home: Noticed) -> None:
    home.opened()
    services, user_id = home.eva.services, home.eva.user.id
    home.bring(GIRO, booked("2026-11-11", "-1.00", "Rewe", "Brot"))
    [held, *_] = connections.account_ids(services.everybody, user_id, home.live.id)
    services.everybody.execute(
        "UPDATE accounts SET hidden_at = $2 WHERE id = $1", held, services.clock.now().replace(tzinfo=None)
    )
    ends = services.clock.now() + timedelta(days=6)
    connections.keep_consent(services.everybody, user_id, home.live.id, expires_at=ends)
    services.everybody.changes(user_id)
    assert [kind for kind, _ in home.told()] == ["consent.ending"]


@pytest.mark.requirement("notices.state")
def test_a_ledger_that_does_not_add_up_waits_on_the_page_and_interrupts_if_it_is_so_the_next_day(home: Noticed) -> None:
    def said(balance: str, day: int) -> None:
        home.becomes(date(2026, 11, day))
        closing = StatementRecord(closing=Decimal(balance), closing_date=date(2026, 11, day))
        home.bring(GIRO, booked(f"2026-11-{day:02}", "-10.00", "Rewe", "Brot"), statement=closing)
        look(home)
        home.eva.services.scheduler._each_round()

    home.opened()
    said("100.00", 21)
    assert home.told() == []
    said("70.00", 22)
    [notice] = home.notices()
    assert (notice["kind"], notice["interrupts"], notice["amount"]) == ("ledger.wrong", False, -20.0)
    home.becomes(date(2026, 11, 23))
    home.eva.services.scheduler._each_round()
    [notice] = home.notices()
    assert (notice["interrupts"], home.messages()) == (True, [("notice.new", "ledger.wrong")] * 2)
    home.brings(GIRO, booked("2026-11-22", "-20.00", "Kino", "Film"))
    home.eva.services.scheduler._each_round()
    assert home.told() == [("ledger.wrong", "over")]


@pytest.mark.requirement("notices.state")
def test_what_is_put_off_comes_back_on_its_day_and_is_told_once_more(home: Noticed) -> None:
    home.opened().brings(GIRO, gym("2026-11-18"))
    client, [notice] = Served(home.eva).client(), home.notices()
    place = f"/notices/{notice['id']}"
    for wrong in (
        {"state": "snoozed"},
        {"state": "snoozed", "until": "2026-12-21"},
        {"state": "read", "until": "2026-12-01"},
    ):
        assert client.patch(place, json=wrong).status_code == 400
    assert client.patch(place, json={"state": "over"}).status_code == 400
    assert client.patch("/notices/ntc_other", json={"state": "read"}).status_code == 404
    rests = client.patch(place, json={"state": "snoozed", "until": "2026-11-22"}).json()
    assert (rests["state"], rests["snoozedUntil"]) == ("snoozed", "2026-11-22")
    for day, state in ((21, "snoozed"), (22, "open"), (23, "open")):
        home.becomes(date(2026, 11, day))
        home.eva.services.scheduler._each_round()
        assert home.told() == [("debit.new", state)]
    assert home.messages() == [("notice.new", "debit.new")] * 2


@pytest.mark.requirement("notices.state")
def test_the_next_page_begins_after_the_last_notice_whatever_was_done_with_it(home: Noticed) -> None:
    payees = ("Fitnesswelt", "Stadtwerke", "Turnverein")
    debits = [booked("2026-11-18", "-29.90", each, "Beitrag", gvc="105", mandate_reference=each) for each in payees]
    home.opened().brings(GIRO, *debits)
    client = Served(home.eva).client()
    query: dict[str, Any] = {"state": "open", "kind": "debit.new", "limit": 1}
    first = client.get("/notices", params=query).json()
    [shown] = first["notices"]
    assert first["nextCursor"] == shown["id"]
    assert client.patch(f"/notices/{shown['id']}", json={"state": "dismissed"}).status_code == 200
    second = client.get("/notices", params={**query, "cursor": shown["id"]}).json()
    third = client.get("/notices", params={**query, "cursor": second["nextCursor"]}).json()
    assert third["nextCursor"] is None
    assert len({each["notices"][0]["id"] for each in (first, second, third)}) == 3
    invented = client.get("/notices", params={**query, "cursor": "ntc_other"})
    assert invented.status_code == 400
    assert invented.json() == {"error": "cursor: not of this list. Begin without one"}


@pytest.mark.requirement("notices.covered")
def test_a_caller_sees_notices_of_the_accounts_and_kinds_that_its_grant_covers(home: Noticed) -> None:
    home.opened().brings(CARD, booked("2026-06-01", "-5.00", "Rewe", "Brot"))
    home.brings(GIRO, gym("2026-11-18"))
    giro, card = (home.account(each) for each in (GIRO, CARD))
    assert giro is not None
    assert card is not None
    served = Served(home.eva)

    def seen(terms: Any) -> list[str]:
        return [each["kind"] for each in served.client(terms).get("/notices").json()["notices"]]

    assert seen(EVERYTHING) == ["debit.new"]
    assert seen(replace(EVERYTHING, accounts=[giro])) == ["debit.new"]
    assert seen(replace(EVERYTHING, accounts=[card])) == []
    assert seen(replace(EVERYTHING, figures_only=True)) == []
    home.do("accounts hide", account=giro, is_hidden=True)
    assert seen(EVERYTHING) == []


@pytest.mark.requirement("notices.state")
def test_what_was_done_to_access_is_told_on_the_page_alone(home: Noticed) -> None:
    server = home.eva.services.authorization
    for _ in range(2):
        assert server.password_change.set(home.eva.user, "hash", "changePassword")
        server.record.note(home.eva.user.id, "addPasskey", is_refused=True)
        server.record.write()
    assert home.messages() == [("notice.new", "access.new")] * 2
    assert home.told() == []
    home.do("notices list", state="open")
    assert home.eva.lines[-1].endswith("access.new: Your password was changed.")
    home.opened()
    home.becomes(date(2027, 1, 2))
    home.eva.services.scheduler._each_round()
    home.do("notices list", state="over")
    assert home.eva.lines[-1].endswith("access.new: Your password was changed.")
    home.eva.services.everybody.execute("UPDATE notices SET content = replace(content, 'changePassword', 'later')")
    home.do("notices list", state="over")  # a newer program knows what that is
    assert home.eva.lines[-1].endswith("access.new: Something about access has changed")


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("notices.state")
def test_operators_are_told_of_a_backup_that_is_missing_until_there_is_one(home: Noticed) -> None:
    services, user = home.eva.services, home.eva.user
    users.set_operator(services.everybody, user.id, is_operator=True)
    services.scheduler._each_minute()
    assert home.messages() == []
    since = services.clock.now() - timedelta(days=9)
    services.everybody.execute("UPDATE users SET created_at = $1 WHERE id = $2", since, user.id)
    services.clock.offset += timedelta(hours=2)
    services.scheduler._each_minute()
    home.do("notices list", state="open")
    assert "server.backup: No backup was made since" in home.eva.lines[-1]
    name = f"{datetime.now(UTC):%Y%m%d-%H%M%S}"
    backup.backup(services.store, services.settings.data_dir / "backups" / name)
    services.clock.offset += timedelta(hours=2)
    services.scheduler._each_minute()
    assert home.messages() == [("notice.new", "server.backup"), ("notice.over", "server.backup")]


@pytest.mark.requirement("notices.covered")
def test_of_what_another_person_shares_its_receiver_hears_what_is_urgent_alone(home: Noticed) -> None:
    shared = home.of_connector("household")
    home.bring(GIRO, booked("2026-06-01", "-5.00", "Rewe", "Brot"), of=shared)
    look(home)
    rent = booked("2026-11-16", "-700.00", "Vermieter", "Miete", gvc="117")
    home.bring(
        GIRO, gym("2026-11-18"), rent, booked("2026-11-18", "700.00", "Vermieter", "Miete", gvc="159"), of=shared
    )
    look(home)
    assert home.told() == [("payment.failed", "open")]


@pytest.mark.requirement("notices.covered")
def test_a_shared_account_that_runs_short_is_told_to_its_receiver_too(home: Noticed) -> None:
    shared = home.of_connector("household")
    home.becomes(date(2026, 11, 1))
    rent = [booked(f"2026-{month:02}-20", "-800.00", "Vermieter", "Miete", gvc="117") for month in range(6, 11)]
    home.bring(GIRO, booked("2026-06-01", "-5.00", "Rewe", "Brot"), *paid(6, 7, 8, 9, 10), *rent, of=shared)
    look(home)
    home.becomes(date(2026, 11, 12))
    said = StatementRecord(closing=Decimal("650.00"), closing_date=date(2026, 11, 12))
    home.bring(GIRO, booked("2026-11-12", "-6.00", "Rewe", "Brot"), of=shared, statement=said)
    look(home)
    assert home.told() == [("overdraft.ahead", "open")]


@pytest.mark.requirement("notices.once")
def test_what_another_source_says_of_a_debit_makes_no_second_cause(home: Noticed) -> None:
    worded = gym("2026-11-17")
    bare = booked("2026-11-17", "-29.90", "Fitnesswelt", "Beitrag", gvc="105")
    home.opened().brings(GIRO, bare)
    [told] = home.notices()
    home.bring(GIRO, worded, of=home.files)
    look(home)
    [first, _] = undoable_imports.of_user(home.eva.services.everybody, home.eva.user.id)[-2:]
    home.eva.undo(first.job_id)
    look(home)
    [same] = home.notices()
    assert (same["id"], same["state"]) == (told["id"], "open")
    assert home.messages() == [("notice.new", "debit.new")]


OTHER = AccountRecord(stable_key="other", currency="EUR", name="Zweites")


@pytest.mark.requirement("notices.once")
def test_a_cause_is_that_of_its_account_and_outlives_a_merge_and_a_separation(home: Noticed) -> None:
    def card(month: int, day: int, amount: str, purpose: str = "Kauf") -> TransactionRecord:
        return booked(f"2026-{month:02}-{day}", amount, "Kino", purpose, gvc="106")

    usual = [card(month, 10, f"-{month}.00") for month in range(5, 11)]
    twice = [card(11, 17, "-24.00"), card(11, 18, "-24.00", "Kauf 2")]
    home.opened(*usual).brings(OTHER, *usual)
    home.brings(GIRO, *twice)
    home.brings(OTHER, *twice)
    assert home.told() == [("charge.double", "open")] * 2
    giro, other = (home.account(each) for each in (GIRO, OTHER))
    home.do("accounts merge", account=other, into=giro)
    look(home)
    home.do("accounts separate", account=other)
    look(home)
    assert home.told() == [("charge.double", "open")] * 2
    assert home.messages().count(("notice.new", "charge.double")) == 2


@pytest.mark.requirement("notices.once")
def test_two_accounts_that_were_one_run_short_each_for_itself(home: Noticed) -> None:
    home.becomes(date(2026, 11, 1))
    rent = [booked(f"2026-{month:02}-20", "-800.00", "Vermieter", "Miete", gvc="117") for month in range(6, 11)]
    for account in (GIRO, OTHER):
        home.brings(account, booked("2026-06-01", "-5.00", "Rewe", "Brot"), *paid(6, 7, 8, 9, 10), *rent)

    def has(account: AccountRecord, amount: str, day: int = 12) -> None:
        said = StatementRecord(closing=Decimal(amount), closing_date=date(2026, 11, day))
        home.bring(account, booked(f"2026-11-{day}", "-6.00", "Rewe", "Brot"), statement=said)
        look(home)

    giro, other = (str(home.account(each)) for each in (GIRO, OTHER))
    home.becomes(date(2026, 11, 12))
    has(OTHER, "5000.00")
    has(GIRO, "650.00")
    assert [(each["kind"], each["accountIds"]) for each in home.notices()] == [("overdraft.ahead", [giro])]
    home.do("accounts merge", account=other, into=giro)
    look(home)
    home.do("accounts separate", account=other)
    look(home)
    services, user_id = home.eva.services, home.eva.user.id
    services.everybody.atomically(lambda session: outbox.set_alert(session, user_id, other, 6000))
    assert {(each["kind"], *each["accountIds"]) for each in home.notices()} == {
        ("overdraft.ahead", giro),
        ("balance.low", other),
    }
    home.becomes(date(2026, 11, 13))
    services.everybody.atomically(lambda session: outbox.set_alert(session, user_id, other, None))
    home.bring(GIRO, booked("2026-11-13", "6000.00", "Oma", "Geschenk"),
               statement=StatementRecord(closing=Decimal(6000), closing_date=date(2026, 11, 13)))  # fmt: skip
    has(OTHER, "600.00", 13)
    told = [(each["state"], each["accountIds"]) for each in home.notices() if each["kind"] == "overdraft.ahead"]
    assert told == [("open", [other]), ("over", [giro])]
    assert home.messages().count(("notice.new", "overdraft.ahead")) == 2


@pytest.mark.requirement("notices.once")
def test_one_fall_of_a_balance_is_told_once_though_a_shortfall_is_told_between(home: Noticed) -> None:
    home.becomes(date(2026, 11, 1))
    rent = [booked(f"2026-{month:02}-20", "-800.00", "Vermieter", "Miete", gvc="117") for month in range(6, 11)]
    home.opened(*paid(6, 7, 8, 9, 10), *rent)
    home.becomes(date(2026, 11, 12))
    at(home, "950.00")
    services, user_id = home.eva.services, home.eva.user.id
    services.everybody.atomically(lambda session: outbox.set_alert(session, user_id, str(home.account(GIRO)), 1000))
    assert home.told() == [("balance.low", "open")]
    home.becomes(date(2026, 11, 13))
    at(home, "650.00", booked("2026-11-13", "-300.00", "Werkstatt", "Reparatur"))
    assert home.told() == [("overdraft.ahead", "open"), ("balance.low", "over")]
    home.becomes(date(2026, 11, 14))
    at(home, "900.00", booked("2026-11-14", "250.00", "Oma", "Geschenk"))
    services.everybody.changes(user_id)
    assert home.told() == [("overdraft.ahead", "over"), ("balance.low", "open")]
    assert home.messages().count(("notice.new", "balance.low")) == 1


@pytest.mark.requirement("notices.kinds")
def test_an_account_with_much_on_it_is_looked_at_before_a_payment_that_is_more(home: Noticed) -> None:
    home.becomes(date(2026, 11, 1))
    tax = [booked(f"{month}-20", "-1500.00", "Finanzamt", "Vorauszahlung", gvc="105", mandate_reference="STEUER-17")
           for month in ("2025-11", "2026-02", "2026-05", "2026-08")]  # fmt: skip
    bread = [booked(f"2026-10-{day:02}", "-6.00", "Rewe", "Brot", gvc="106") for day in range(2, 30, 3)]
    home.brings(GIRO, *tax, *bread)
    home.becomes(date(2026, 11, 12))
    at(home, "1400.00", booked("2026-11-12", "-6.00", "Rewe", "Brot"))
    assert [(each["kind"], each["amount"]) for each in home.notices()] == [("overdraft.ahead", 100.0)]


@pytest.mark.requirement("notices.state")
def test_a_ledger_waits_for_the_next_day_of_the_servers_calendar(home: Noticed) -> None:
    services, user_id = home.eva.services, home.eva.user.id
    home.opened()

    def looked_at(day: int, hour: int) -> tuple[bool, int]:
        services.clock.offset += datetime.combine(date(2026, 11, day), time(hour, 30)) - services.clock.now()
        today = services.clock.today()
        services.everybody.atomically(lambda session: look_at_ledgers(session, user_id, today=today))
        return [each["interrupts"] for each in home.notices()][:1] == [True], len(home.messages())

    for day, balance in ((21, "100.00"), (22, "70.00")):
        home.becomes(date(2026, 11, day))
        closing = StatementRecord(closing=Decimal(balance), closing_date=date(2026, 11, day))
        home.bring(GIRO, booked(f"2026-11-{day}", "-10.00", "Rewe", "Brot"), statement=closing)
        looked = looked_at(day, 23)  # half past midnight there
    assert services.clock.today() == date(2026, 11, 23)
    assert looked == (False, 1)
    assert looked_at(23, 22) == (False, 1)
    assert looked_at(23, 23) == (True, 2)


@pytest.mark.requirement("notices.kinds")
def test_a_granted_overdraft_is_the_limit_as_its_person_says_else_as_the_bank_does(
    home: Noticed, tmp_path: Path
) -> None:
    home.becomes(date(2026, 11, 1))
    rent = [booked(f"2026-{month:02}-20", "-800.00", "Vermieter", "Miete", gvc="117") for month in range(6, 11)]
    home.opened(*paid(6, 7, 8, 9, 10), *rent)
    home.becomes(date(2026, 11, 12))
    said = StatementRecord(closing=Decimal("650.00"), closing_date=date(2026, 11, 12), credit_line=Decimal(500))
    home.bring(GIRO, booked("2026-11-12", "-6.00", "Rewe", "Brot"), statement=said)
    look(home)
    assert home.told() == []
    client, place = Served(home.eva).client(), f"/accounts/{home.account(GIRO)}"
    for line, shown, told in ((100, 100, "open"), (None, 500, "over"), (0, 0, "open"), (1000.5, 1000.5, "over")):
        assert client.patch(place, json={"creditLine": line}).json()["creditLine"] == shown
        home.eva.services.scheduler._each_round()
        assert home.told() == [("overdraft.ahead", told)]
    assert home.messages().count(("notice.new", "overdraft.ahead")) == 1
    assert (
        b'<CdtLine><Incl>false</Incl><Amt Ccy="EUR">1000.50</Amt></CdtLine>' in home.eva.exported(tmp_path)["camt053"]
    )
    for wrong in (-1, 0.001):
        assert client.patch(place, json={"creditLine": wrong}).status_code == 400
    home.bring(GIRO, booked("2026-11-12", "-7.00", "Rewe", "Brot"), of=home.files)
    [*_, last] = undoable_imports.of_user(home.eva.services.everybody, home.eva.user.id)
    home.eva.undo(last.job_id)
    assert client.patch(place, json={}).json()["creditLine"] == 1000.5
    assert client.patch(place, json={"creditLine": None}).json()["creditLine"] == 500
