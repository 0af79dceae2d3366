"""Browsers as targets: one has one owner, signing out ends it, and what its push service says counts."""

from collections.abc import Callable, Iterator
from ipaddress import ip_network
from typing import Any

import pytest

from connectors.ways.web_push import WebPush
from handlers.commands import access
from handlers.work.ways import web_push_key
from storage import users
from storage.notices.ways import targets
from tests.service.conftest import Said
from tests.ways.conftest import Reached
from tests.ways.push_service import PushService, SubscribedBrowser

pytestmark = pytest.mark.requirement("ways.push")

Json = dict[str, Any]


class Pushed:
    """A person with browsers, whose push service is on this machine."""

    def __init__(self, home: Reached) -> None:
        self.home, self.services = home, home.services
        self.maker = PushService()
        self.services.ways = {
            **home.ways,
            "push": WebPush(self._key, contact="https://bank.example", allowed=[ip_network("127.0.0.0/8")]),
        }

    def _key(self) -> Any:
        return web_push_key(self.services.everybody, self.services.connection_keys)

    def add(self, browser: SubscribedBrowser, status: int = 201, **further: Any) -> Json:
        answer = self.home.page().post("/notices/targets", json={"subscription": browser.subscription, **further})
        assert answer.status_code == status, answer.text
        return dict(answer.json())

    def said(self, browser: SubscribedBrowser) -> list[Json]:
        """What this browser was shown, once nothing more is due."""
        self.home.quiet()
        path = browser.endpoint.removeprefix(self.maker.origin)
        assert self.maker.complaints == []
        return [browser.read(body) for _, body in self.maker.heard[path]]

    def target(self, browser: SubscribedBrowser, **further: Any) -> Json:
        """This browser as a target that works."""
        made = self.add(browser, **further)
        code = self.said(browser)[-1]["title"][-8:]
        answer = self.home.page().post(f"/notices/targets/{made['id']}/confirmation", json={"code": code})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def test(self, target: Json) -> None:
        assert self.home.page().post(f"/notices/targets/{target['id']}/test").status_code == 202
        self.home.quiet()

    def targets(self) -> list[Json]:
        found: list[Json] = self.home.page().get("/notices/targets").json()["targets"]
        return found

    def titles(self, browser: SubscribedBrowser) -> list[str]:
        return [each["title"] for each in self.said(browser)]

    def close(self) -> None:
        self.maker.close()
        self.services.ways["push"].close()


@pytest.fixture
def pushed(home: Reached) -> Iterator[Pushed]:
    made = Pushed(home)
    yield made
    made.close()


def test_a_browser_works_by_the_code_that_it_showed_and_stays_one_target(pushed: Pushed) -> None:
    browser = pushed.maker.browser()
    assert pushed.home.page().get("/notices/targets").json()["ways"] == ["email", "push"]
    pushed.maker.key = pushed.home.page().get("/notices/push-key").json()["key"]
    target = pushed.target(browser, name="Firefox, Linux")
    assert (target["way"], target["scheme"], target["last"], target["state"]) == ("push", "https", "/w/1", "working")
    again = pushed.add(browser, 200)
    assert again == target
    assert pushed.targets() == [target]
    assert len(pushed.said(browser)) == 1  # no second code
    pushed.test(target)
    told = pushed.said(browser)[1]
    assert (told["title"], told["tag"], told["link"]) == ("A test", "test", "http://127.0.0.1:8000/notices")
    kept = str(pushed.services.everybody.rows("SELECT * FROM notice_targets"))
    assert browser.endpoint not in kept


def test_a_browser_belongs_to_whoever_entered_its_code_last_and_knowing_its_address_takes_it_from_nobody(
    pushed: Pushed,
) -> None:
    browser = pushed.maker.browser()
    own = pushed.target(browser)
    home, eva = pushed.home, pushed.home.eva.user
    other = users.add(
        pushed.services.everybody,
        name="otto",
        password_hash=None,
        has_subscription=True,
        home_currency="EUR",
        now=pushed.services.clock.now(),
    )
    home.eva.user = other
    theirs = pushed.add(browser)
    home.eva.user = eva
    assert [each["state"] for each in pushed.targets()] == ["working"], "not before the code was entered"
    home.eva.user = other
    code = pushed.titles(browser)[-1][-8:]
    answer = home.page().post(f"/notices/targets/{theirs['id']}/confirmation", json={"code": code})
    assert answer.status_code == 200
    home.eva.user = eva
    assert pushed.targets() == []
    assert targets.find(pushed.services.everybody, eva.id, own["id"]) is None
    removed = "An address at which you were told of notices was removed."
    assert removed in [each["text"] for each in home.page().get("/notices?kind=access.new").json()["notices"]]


@pytest.mark.parametrize(
    ("status", "state", "reason"), [(404, None, None), (410, None, None), (403, "paused", "not_allowed")]
)
def test_what_the_push_service_says_of_a_browser_counts(
    pushed: Pushed, status: int, state: str | None, reason: str | None
) -> None:
    target = pushed.target(pushed.maker.browser())
    pushed.maker.answers["/w/1"] = (status, {})
    pushed.test(target)
    assert [(each["state"], each["reason"]) for each in pushed.targets()] == ([(state, reason)] if state else [])


def signs_out(pushed: Pushed, here: str, there: str) -> None:
    pushed.services.authorization.sessions.end(here)


def is_signed_out(pushed: Pushed, here: str, there: str) -> None:
    assert pushed.services.authorization.sessions.sign_out(pushed.home.eva.user.id, here)


def others_end(pushed: Pushed, here: str, there: str) -> None:
    sessions = pushed.services.authorization.sessions
    kept = next(each for each in sessions.of_user(pushed.home.eva.user.id) if each.id_hash == there)
    sessions.end_all(pushed.home.eva.user.id, but=kept)  # type: ignore[arg-type]  # its hash is what counts


@pytest.mark.parametrize("way", [signs_out, is_signed_out, others_end])
def test_signing_out_ends_what_is_pushed_there_with_a_last_sentence_and_leaves_other_browsers(
    pushed: Pushed, way: Callable[[Pushed, str, str], None]
) -> None:
    first, second = pushed.maker.browser("/w/1"), pushed.maker.browser("/w/2")
    here, there = pushed.target(first), pushed.target(second)
    sessions, everybody, user = pushed.services.authorization.sessions, pushed.services.everybody, pushed.home.eva.user
    signed_in = [sessions.sign_in(None, user.id) for _ in range(2)]
    for target, browser in zip((here, there), signed_in, strict=True):
        targets.set_session(everybody, user.id, target["id"], browser.id_hash)
    renewed = sessions.sign_in(signed_in[0], user.id)  # a new password, or again after the session ran out
    assert len(pushed.targets()) == 2
    way(pushed, renewed.id_hash, signed_in[1].id_hash)
    assert [each["id"] for each in pushed.targets()] == [there["id"]]
    assert pushed.titles(first)[-1] == "No more notices come here"
    assert pushed.titles(second)[-1] == "Something about access has changed"


def test_another_key_of_the_store_pauses_browsers_until_they_subscribe_again(pushed: Pushed) -> None:
    browser, before = pushed.maker.browser(), pushed.home.page().get("/notices/push-key").json()["key"]
    target, said = pushed.target(browser), Said()
    pushed.home.target("eva@example.org")
    access.renew_push_key(pushed.services, said)
    assert pushed.home.page().get("/notices/push-key").json()["key"] != before
    paused = next(each for each in pushed.targets() if each["id"] == target["id"])
    assert (paused["state"], paused["reason"]) == ("paused", "not_allowed")
    assert [each["state"] for each in pushed.targets() if each["way"] == "email"] == ["working"]
    again = pushed.target(pushed.maker.browser("/w/9"))
    assert again["id"] != target["id"]


def test_a_key_that_cannot_be_read_is_said_and_renewed(pushed: Pushed, caplog: pytest.LogCaptureFixture) -> None:
    page = pushed.home.page()
    assert page.get("/notices/push-key").status_code == 200
    pushed.services.everybody.execute("UPDATE connection_secrets SET sealed = 'gone.x' WHERE user_id = ''")
    assert page.get("/notices/push-key").status_code == 503
    assert "renew-push-key" in caplog.text
    access.renew_push_key(pushed.services, Said())
    assert page.get("/notices/push-key").status_code == 200
