"""Web Push against a push service that checks and opens what it gets."""

import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from ipaddress import ip_network
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from connectors.ways import Address, AddressRefused, Letter, LetterOutcome
from connectors.ways.web_push import WebPush, WebPushKey, encrypted
from tests.ways.push_service import PushService, bytes_of, digest_of

KEY = WebPushKey(WebPushKey.new())
LETTER = Letter(
    id="ntd_1",
    tag="ntc_1",
    title="To look at",
    text="Ein Konto reicht nicht: −12,00 €",
    link="https://bank.example/?notice=ntc_1",
    seconds=3600,
    at=datetime.now(UTC).replace(tzinfo=None),
)


@pytest.fixture
def service() -> Iterator[PushService]:
    running = PushService(KEY.public)
    yield running
    running.close()


@pytest.fixture(scope="module")
def way() -> Iterator[WebPush]:
    made = WebPush(lambda: KEY, contact="https://bank.example", allowed=[ip_network("127.0.0.0/8")])
    yield made
    made.close()


def changed(**values: Any) -> Letter:
    return Letter(**{**{name: getattr(LETTER, name) for name in Letter.__struct_fields__}, **values})


@pytest.mark.requirement("ways.push")
def test_the_message_of_rfc_8291_is_made_to_the_letter() -> None:
    """Section 5 and appendix A."""
    own = ec.derive_private_key(
        int.from_bytes(bytes_of("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"), "big"), ec.SECP256R1()
    )
    keys = {
        "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    }
    text = b"When I grow up, I want to be a watermelon"
    made = encrypted(text, keys, salt=bytes_of("DGv6ra1nlYgDCS1FRnbzlw"), own=own, padded=len(text))
    assert made == bytes_of(
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A"
        "_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )


@pytest.mark.requirement("ways.push")
def test_a_letter_is_read_by_its_browser_alone_and_says_how_much_it_hurries(service: PushService, way: WebPush) -> None:
    browser, urgent = service.browser(), service.browser("/w/2")
    address = way.checked(browser.subscription)
    assert (address.scheme, address.last) == ("https", "/w/1")
    assert address.unique == digest_of(browser.endpoint)
    assert way.checked(service.browser("/w/?token=AbC%3d%3d").subscription).last == "=AbC"
    assert way.send(address.sealed, LETTER) == LetterOutcome(state="delivered")
    hurried = changed(is_urgent=True, seconds=10**6, text="ä" * 4000)
    assert way.send(way.checked(urgent.subscription).sealed, hurried) == LetterOutcome(state="delivered")
    (headers, body), (other, cut) = service.heard["/w/1"][0], service.heard["/w/2"][0]
    said = {"title": LETTER.title, "text": LETTER.text, "tag": "ntc_1", "link": LETTER.link, "isSilent": False}
    assert browser.read(body) == said
    assert len(body) == len(cut)
    assert urgent.read(cut)["text"] == "ä" * 600
    assert (headers["urgency"], headers["ttl"], other["urgency"], other["ttl"]) == ("normal", "3600", "high", "259200")
    assert headers["topic"] == other["topic"]
    assert b"Konto" not in body
    assert service.complaints == []


@pytest.mark.requirement("ways.push")
@pytest.mark.parametrize(
    ("status", "headers", "outcome"),
    [
        (404, {}, LetterOutcome(state="gone", reason="gone")),
        (410, {}, LetterOutcome(state="gone", reason="gone")),
        (401, {}, LetterOutcome(state="paused", reason="not_allowed")),
        (403, {}, LetterOutcome(state="paused", reason="not_allowed")),
        (429, {"Retry-After": "90"}, LetterOutcome(state="later", reason="too_many", wait=90)),
        (503, {"Retry-After": "5"}, LetterOutcome(state="later", reason="no_answer", wait=5)),
        (400, {}, LetterOutcome(state="refused", reason="refused")),
        (413, {}, LetterOutcome(state="refused", reason="refused")),
        (307, {"Location": "/inside"}, LetterOutcome(state="refused", reason="refused")),
    ],
)
def test_each_answer_of_a_push_service_means_one_thing_and_no_redirect_is_followed(
    service: PushService, way: WebPush, status: int, headers: dict[str, str], outcome: LetterOutcome
) -> None:
    service.answers["/w/1"] = (status, headers)
    assert way.send(way.checked(service.browser().subscription).sealed, LETTER) == outcome
    assert (len(service.heard["/w/1"]), service.heard["/inside"]) == (1, [])


@pytest.mark.requirement("ways.push")
def test_a_slow_service_holds_up_no_other_and_a_sender_that_was_ended_is_replaced(
    service: PushService, way: WebPush, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.ways.web_push.SECONDS", 1)
    service.waits["/slow"] = threading.Event()
    slow, outcomes = way.checked(service.browser("/slow").subscription).sealed, list[LetterOutcome]()
    waiting = threading.Thread(target=lambda: outcomes.append(way.send(slow, LETTER)))
    waiting.start()
    fast = way.checked(service.browser().subscription).sealed
    assert way.send(fast, LETTER).state == "delivered"
    assert outcomes == []
    waiting.join(60)
    assert outcomes == [LetterOutcome(state="later", reason="timeout")]
    sender = way._exchanges._process
    assert sender is not None
    sender._process.kill()
    sender._process.wait()
    assert way.send(fast, LETTER) == LetterOutcome(state="later", reason="no_answer")
    assert way.send(fast, LETTER).state == "delivered"


Spoiling = Callable[[dict[str, Any]], object]


@pytest.mark.requirement("ways.push")
@pytest.mark.parametrize(
    "spoil",
    [
        lambda told: told.update(endpoint="https://10.0.0.1/w"),
        lambda told: told.update(endpoint="https://127.0.0.1.nip.example@10.0.0.1/w"),
        lambda told: told.update(endpoint="ftp://push.example/w"),
        lambda told: told.update(endpoint="https://push.example/" + "w" * 2000),
        lambda told: told.pop("keys"),
        lambda told: told["keys"].update(auth="AAAA"),
        lambda told: told["keys"].update(p256dh="BCVx"),
        lambda told: told["keys"].update(p256dh="B" + "A" * 86),
    ],
    ids=["inside", "user", "scheme", "long", "no_keys", "short_secret", "short_key", "off_the_curve"],
)
def test_what_no_browser_says_is_no_subscription(way: WebPush, service: PushService, spoil: Spoiling) -> None:
    told: dict[str, Any] = json.loads(json.dumps(service.browser().subscription))
    spoil(told)
    with pytest.raises(AddressRefused):
        way.checked(told)


@pytest.mark.requirement("ways.push")
def test_an_endpoint_that_leads_inside_is_not_asked(service: PushService) -> None:
    outside = WebPush(lambda: KEY, contact="https://bank.example", allowed=[])
    inside = Address(sealed=json.dumps(service.browser().subscription), scheme="https", last="/w/1")
    assert outside.send(inside.sealed, LETTER) == LetterOutcome(state="later", reason="address_not_allowed")
    outside.close()
    assert not service.heard
