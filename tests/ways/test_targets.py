"""A target works once the code that was sent there was entered; nobody is written to unasked, nor silenced."""

import json

import pytest

from connectors.ways import REASONS
from handlers.commands.control_socket import CommandError
from storage.notices.ways import targets
from tests.documents.conftest import ROOT
from tests.ways.conftest import Reached

pytestmark = pytest.mark.requirement("notices.ways")


def test_a_target_works_by_the_code_that_was_sent_there_and_shows_no_more_than_its_end(home: Reached) -> None:
    page = home.page()
    assert page.get("/notices/targets").json() == {"targets": [], "ways": ["email"]}
    answer = page.post("/notices/targets", json={"email": "eva@example.org", "name": "Mail\u202e"})
    made = answer.json()
    assert (answer.status_code, made["state"], made["scheme"], made["last"], made["name"]) == (
        201, "unconfirmed", "mailto", ".org", "Mail",
    )  # fmt: skip
    code = home.code()
    [(sender, to, mail)] = home.server.came
    assert (sender, to, mail["To"], mail["Auto-Submitted"]) == (
        "bank@example.org", ["eva@example.org"], "eva@example.org", "auto-generated",
    )  # fmt: skip
    where = f"/notices/targets/{made['id']}"
    wrong = f"{(int(code) + 1) % 10**8:08}"
    for _ in range(5):
        assert page.post(f"{where}/confirmation", json={"code": wrong}).status_code == 400
    assert page.post(f"{where}/confirmation", json={"code": code}).status_code == 429
    assert page.post(f"{where}/test").status_code == 202
    assert home.mails(2)[1]["Subject"] != mail["Subject"]
    home.server.came.pop(0)
    assert page.post(f"{where}/confirmation", json={"code": code}).status_code == 400
    confirmed = page.post(f"{where}/confirmation", json={"code": home.code()})
    assert (confirmed.status_code, confirmed.json()["state"]) == (200, "working")
    assert page.post(f"{where}/confirmation", json={"code": code}).status_code == 409
    assert [each["what"] for each in home.deliveries(made)] == ["code", "code"]
    kept = home.services.everybody.rows("SELECT * FROM notice_targets") + home.services.everybody.rows(
        "SELECT * FROM notice_deliveries"
    )
    assert "eva@example" not in str(kept)


def test_no_more_than_three_codes_a_day_are_sent_that_nobody_enters(home: Reached) -> None:
    page = home.page()
    for name in ("a", "b", "c"):
        assert page.post("/notices/targets", json={"email": f"{name}@example.org"}).status_code == 201
    assert page.post("/notices/targets", json={"email": "d@example.org"}).status_code == 429
    assert len(page.get("/notices/targets").json()["targets"]) == 3
    home.mails(3)
    [first, *_] = page.get("/notices/targets").json()["targets"]
    assert page.delete(f"/notices/targets/{first['id']}").status_code == 204
    assert page.post("/notices/targets", json={"email": "d@example.org"}).status_code == 429
    home.mails(3)  # who never said yes is told of no end
    home.passes(days=1)
    assert page.post("/notices/targets", json={"email": "d@example.org"}).status_code == 201
    for given in ({}, {"email": "a@example.org", "url": "ntfys://a"}, {"email": "a@b\r\nBcc: c@example.org"}):
        assert page.post("/notices/targets", json=given).status_code == 400
    answer = page.post("/notices/targets", json={"url": "ntfys://example.org/a"})
    assert (answer.status_code, answer.json()["error"]) == (
        409,
        "This server sends to no such address. Its operator can install Apprise",
    )


def test_who_adds_or_removes_a_target_is_told_of_and_it_gets_one_last_sentence(home: Reached) -> None:
    first, second = home.target("a@example.org"), home.target("b@example.org")
    home.server.came.clear()
    assert home.page().delete(f"/notices/targets/{second['id']}").status_code == 204
    home.quiet()
    by_target = {(to[0], mail["Subject"]) for _, to, mail in home.server.came}
    assert by_target == {
        ("b@example.org", "No more notices come here"),
        ("a@example.org", "Something about access has changed"),
    }
    assert [each["id"] for each in home.page().get("/notices/targets").json()["targets"]] == [first["id"]]
    assert targets.find(home.services.everybody, home.eva.user.id, second["id"]) is None
    seen = [each["text"] for each in home.page().get("/notices?kind=access.new").json()["notices"]]
    assert sorted(seen) == [
        "An address at which you were told of notices was removed.",
        "An address was added at which you are told of notices.",
        "An address was added at which you are told of notices.",
    ]


def test_the_contract_has_every_word_for_what_was_not_delivered() -> None:
    schemas = json.loads((ROOT / "openapi.json").read_bytes())["components"]["schemas"]
    for schema, member in (("NoticeTarget", "reason"), ("NoticeDelivery", "reason"), ("NoticeAttempt", "reason")):
        assert schemas[schema]["properties"][member]["enum"] == [*REASONS, None]


def test_an_app_neither_sees_nor_changes_how_a_person_is_told(home: Reached) -> None:
    made, app = home.target(), home.page("")
    where = f"/notices/targets/{made['id']}"
    for method, path, body in (
        ("GET", "/notices/settings", None),
        ("PUT", "/notices/settings", home.page().get("/notices/settings").json()),
        ("GET", "/notices/targets", None),
        ("POST", "/notices/targets", {"email": "thief@example.org"}),
        ("DELETE", where, None),
        ("POST", f"{where}/confirmation", {"code": "00000000"}),
        ("POST", f"{where}/test", None),
        ("GET", f"{where}/deliveries", None),
        ("GET", "/notices/push-key", None),
    ):
        assert app.request(method, path, json=body).status_code == 403, path
    assert len(home.page().get("/notices/push-key").json()["key"]) == 87
    assert home.page().get("/notices/targets/ntt_unknown/deliveries").status_code == 404


def test_commands_say_how_and_where_a_person_is_told_and_try_it(home: Reached) -> None:
    home.do("notices settings")
    home.do("notices targets")
    assert home.eva.notes[-2:] == [
        "eva has said nothing yet: every kind is told at once, in no quiet hours.",
        "eva is told on the page alone.",
    ]
    made = home.target(name="Mail")
    home.set(language="fr", quietHours={"from": "22:00", "until": "07:00"}, kinds={"balance.low": "off"})
    home.do("notices settings")
    home.do("notices targets")
    assert home.eva.lines[-6:] == [
        "language\tfr",
        "time zone\tEurope/Berlin",
        "quiet hours\t22:00 to 07:00",
        "digest\toff",
        "balance.low\toff",
        f"{made['id']}\temail\tmailto:....org\tMail\tworking",
    ]
    home.server.came.clear()
    home.do("notices test", target_id=made["id"])
    assert home.subjects() == ["Un essai"]
    with pytest.raises(CommandError, match="No target ntt_x works"):
        home.do("notices test", target_id="ntt_x")
