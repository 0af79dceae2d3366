"""What /account/connect says to whoever is not signed in, sends what it does not offer, or asks for what is over."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from analytics.messages import Message
from connectors.connecting import Question
from handlers.oauth.connect_page import image
from handlers.oauth.mistakes import Mistake
from tests.days import today
from tests.live.conftest import Live, connection
from tests.live.test_enable_banking import fields, signed_in

pytestmark = pytest.mark.requirement("live.attempts")

UNREADABLE = (400, "This request cannot be read")
OVER = (400, "This attempt to connect a bank is over")
PICTURE = Question(text=Message("Look"), image=b"\x89PNG", image_type="image/png")


@pytest.fixture
def browser(live: Live) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=live.served.address, timeout=60, trust_env=False, headers={"Accept-Language": "en"}
    ) as made:
        yield made


def said(answer: httpx.Response) -> tuple[int, str]:
    """The status and the heading of the page."""
    return answer.status_code, answer.text.partition("<h1>")[2].partition("</h1>")[0].strip()


def test_who_is_not_signed_in_is_led_to_the_sign_in_and_sees_no_picture(browser: httpx.Client) -> None:
    for path in (
        "/account/connect",
        "/account/connect/step?attempt=att_1",
        "/account/connect/disconnect?connection=con_1",
    ):
        answer = browser.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/oauth/login")
    assert browser.get("/account/connect/image?attempt=att_1").status_code == 400


def test_what_is_not_offered_or_is_another_users_is_not_begun_and_what_is_unknown_is_over(
    live: Live, browser: httpx.Client
) -> None:
    signed_in(browser, live.user())
    form = {"form_token": fields(browser.get("/account/connect").text)["form_token"]}
    assert said(browser.post("/account/connect", data={**form, "source": "nobody"})) == UNREADABLE
    assert said(browser.post("/account/connect", data={**form, "connection": "con_of_another"})) == UNREADABLE
    assert said(browser.post("/account/connect/fetch", data={**form, "connection": "con_of_another"})) == UNREADABLE
    assert (
        said(browser.post("/account/connect/disconnect", data={**form, "connection": "con_of_another"})) == UNREADABLE
    )
    asked = browser.get("/account/connect/disconnect?connection=con_of_another")
    assert (asked.status_code, asked.headers["location"].endswith("/account/connect")) == (303, True)
    assert said(browser.post("/account/connect/step", data={**form, "attempt": "att_1"})) == OVER
    assert said(browser.get("/account/connect/step?attempt=att_1")) == OVER
    step = browser.post("/account/connect", data={**form, "source": "simplefin"}).headers["location"]
    asked = browser.get(step.replace("/step", "/image"))
    assert said(asked) == (404, OVER[1])


def test_an_end_that_the_provider_does_not_know_of_is_told_as_such_and_an_unknown_notice_not_at_all(
    live: Live, browser: httpx.Client
) -> None:
    signed_in(browser, live.user())
    told = "The access could not be ended at the provider from here"
    assert told in browser.get("/account/connect?notice=disconnected_here").text
    assert told not in browser.get("/account/connect?notice=disconnected").text
    unknown = browser.get("/account/connect?notice=anything")
    assert (unknown.status_code, "anything" in unknown.text) == (200, False)


@pytest.mark.long
def test_a_bank_whose_allowance_is_used_up_is_said_to_be_left_alone_and_not_to_be_fetched_from(
    live: Live, browser: httpx.Client
) -> None:
    customer, user = live.simplefin.customer(), live.user()
    customer.account("1", "1.00", day=today())
    live.bankdata("connect", "simplefin", "--user", user, stdin=f"{customer.token}\n")
    for _ in range(connection(live, user)["quota"]["remaining"]):
        live.sync(user)
    signed_in(browser, user)
    browser.follow_redirects = True
    form = {"form_token": fields(browser.get("/account/connect").text)["form_token"]}
    fetched = browser.post("/account/connect/fetch", data={**form, "connection": connection(live, user)["id"]})
    again = live.simplefin.customer()
    step = fields(browser.post("/account/connect", data={**form, "source": "simplefin"}).text)
    renewed = browser.post("/account/connect/step", data={**step, "token": again.token})
    assert "SimpleFIN is connected." in renewed.text
    for page in (fetched, renewed):
        assert "wants to be left alone for now" in page.text
        assert "being fetched" not in page.text
        assert "See the note beside it" not in page.text


def shown(step: object) -> Any:
    """The answer to the request for the picture of this step."""
    user = SimpleNamespace(id="eva")
    site = SimpleNamespace(
        server=SimpleNamespace(sign_in=SimpleNamespace(user_of=lambda _: user)),
        services=SimpleNamespace(connecting=SimpleNamespace(find=lambda *_, **__: SimpleNamespace(step=step))),
    )
    visit = SimpleNamespace(browser=SimpleNamespace(id_hash="hash"), parameters={"attempt": ("att_1",)})
    return image(site, visit)  # type: ignore[arg-type]  # what it reads of them


def test_a_picture_is_shown_as_the_bank_sent_it() -> None:
    answer = shown(PICTURE)
    assert (answer.status_code, answer.body, answer.media_type) == (200, b"\x89PNG", "image/png")


@pytest.mark.parametrize("kind", ["image/svg+xml", "text/html"])
def test_a_picture_that_could_do_something_is_not_shown(kind: str) -> None:
    with pytest.raises(Mistake) as refused:
        shown(Question(text=PICTURE.text, image=b"<svg/>", image_type=kind))
    assert (refused.value.name, refused.value.status) == ("connecting_over", 404)
