"""The one client that asks banks, against a real web server: what comes is bounded, and no message tells a secret."""

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from typing import Any

import pytest

from connectors import outgoing_http
from connectors.connector import ProviderUnavailable, RateLimited, SourceError
from connectors.outgoing_http import DEPTH_MAX, WATCHED_BY, Exchange, Provider
from tests.simulators.web_bank import Handler, Parrot, Said, serving

pytestmark = pytest.mark.requirement("live.provider")

SECRETS = ("hunter2", "bearer-7f3a", "code-91c2", "customer-55", "body-secret")


@dataclass
class Asking:
    """The bank, the provider that asks it, and the pauses that were made."""

    bank: Parrot
    provider: Provider
    pauses: list[float] = field(default_factory=list)

    @property
    def host(self) -> str:
        return self.provider.host


@pytest.fixture(scope="module")
def bank() -> Iterator[Parrot]:
    with serving(Parrot()) as served:
        yield served


@pytest.fixture(scope="module")
def provider(bank: Parrot) -> Iterator[Provider]:
    found = Provider(bank.address)
    yield found
    found.close()


@pytest.fixture
def asking(bank: Parrot, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Asking:
    bank.asked.clear()
    bank.faults.clear()
    bank.said = Said(document={})
    found = Asking(bank, provider)
    monkeypatch.setattr("connectors.outgoing_http.time.sleep", found.pauses.append)
    return found


@contextmanager
def refused(sentence: str) -> Iterator["pytest.ExceptionInfo[ProviderUnavailable]"]:
    """What the block asks is refused with this sentence, of which no word is left out."""
    with pytest.raises(ProviderUnavailable) as refusal:
        yield refusal
    assert str(refusal.value) == sentence


def nested(depth: int, inside: str = "") -> str:
    return "[" * depth + inside + "]" * depth


def test_an_answer_of_just_the_size_that_is_allowed_is_read_and_one_byte_more_is_not(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing_http, "ANSWER_BYTES_MAX", 1_000)
    asking.bank.said = Said(text="x" * 1_000)
    assert len(asking.provider.get("/rows").body) == 1_000
    asking.bank.said = Said(text="x" * 1_001)
    with refused(f"{asking.host} sent more than 1000 bytes."):
        asking.provider.get("/rows")


@pytest.mark.parametrize("inside", ["", "1", '{"a": 1}'])
def test_a_document_is_read_down_to_the_depth_that_is_allowed(asking: Asking, inside: str) -> None:
    lists = DEPTH_MAX - inside.count("{")
    asking.bank.said = Said(text=nested(lists, inside))
    assert json.dumps(asking.provider.get("/rows").document()) == nested(lists, inside)
    asking.bank.said = Said(text=nested(lists + 1, inside))
    answer = asking.provider.get("/rows")
    with refused(f"{asking.host} sent a damaged answer.") as refusal:
        answer.document()
    assert refusal.value.detail == "nested more than 64 deep"


def test_a_document_deeper_than_the_reader_can_go_is_damaged(asking: Asking) -> None:
    asking.bank.said = Said(text=nested(100_000))
    with refused(f"{asking.host} sent a damaged answer."):
        asking.provider.get("/rows").document()


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8", "application/problem+json"])
def test_json_is_read_by_its_content_type(asking: Asking, kind: str) -> None:
    asking.bank.said = Said(text='{"amount": 0.10}', content_type=kind)
    assert asking.provider.get("/rows").members() == {"amount": Decimal("0.10")}


@pytest.mark.parametrize("kind", ["text/html", "text/plain", "", "application/jsonx", "application/json-seq"])
def test_what_is_not_called_json_is_not_read_as_it(asking: Asking, kind: str) -> None:
    asking.bank.said = Said(text="{}", content_type=kind)
    with refused(f"{asking.host} answered with something that is not JSON."):
        asking.provider.get("/rows").document()


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"a": NaN}', '{"a": Infinity}', f'{{"a": {"9" * 5_000}}}', "{} {}", '{"a": 1e9999999999999999999}'],
)
def test_damaged_json_is_refused(asking: Asking, text: str) -> None:
    asking.bank.said = Said(text=text)
    with refused(f"{asking.host} sent a damaged answer."):
        asking.provider.get("/rows").document()


@pytest.mark.parametrize("text", ["[]", "1", '"a"', "null"])
def test_json_that_is_no_object_has_no_members(asking: Asking, text: str) -> None:
    asking.bank.said = Said(text=text)
    with refused(f"{asking.host} sent a damaged answer."):
        asking.provider.get("/rows").members()


@pytest.mark.parametrize(("text", "is_line"), [(" https://x/y \n", True), ("", False), ("a\nb", False), ("é", False)])
def test_a_line_is_one_line_of_ascii(asking: Asking, text: str, is_line: bool) -> None:
    asking.bank.said = Said(text=text, content_type="text/plain")
    answer = asking.provider.get("/claim")
    if is_line:
        assert answer.line() == text.strip()
    else:
        with refused(f"{asking.host} sent a damaged answer."):
            answer.line()


@pytest.mark.parametrize("fault", ["truncated", "hang-up"])
def test_an_answer_that_breaks_off_is_no_answer_and_is_not_asked_for_again(asking: Asking, fault: str) -> None:
    asking.bank.faults.append(fault)
    with refused(f"{asking.host} broke off."):
        asking.provider.get("/rows")
    assert len(asking.bank.asked) == 1


def test_a_packed_answer_is_not_unpacked(asking: Asking) -> None:
    asking.bank.said = Said(text=gzip.compress(b"{}").decode("latin-1"), headers={"Content-Encoding": "gzip"})
    with refused(f"{asking.host} sent a damaged answer."):
        asking.provider.get("/rows")
    assert asking.bank.asked[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(asking: Asking, status: int) -> None:
    asking.bank.said = Said(status=status, headers={"Location": f"{asking.bank.address}/elsewhere"})
    for ask in (asking.provider.get, asking.provider.post, asking.provider.delete):
        with refused(f"{asking.host} sends on to another address, and that is not followed."):
            ask("/rows")
    assert asking.bank.paths() == ["GET /rows", "POST /rows", "DELETE /rows"]


@pytest.mark.parametrize(
    ("sent", "content_type", "body"),
    [
        ({"document": {"a": 1}}, "application/json", b'{"a":1}'),
        ({"document": {}}, "application/json", b"{}"),
        ({"form": {"a": "1 2"}}, "application/x-www-form-urlencoded", b"a=1+2"),
        ({"content": b"HNHBK:1"}, None, b"HNHBK:1"),
        ({}, None, b""),
    ],
)
def test_a_post_carries_a_document_a_form_or_bytes(
    asking: Asking, sent: dict[str, Any], content_type: str | None, body: bytes
) -> None:
    asking.provider.post("/rows", **sent)
    (asked,) = asking.bank.asked
    assert (asked.headers.get("content-type"), asked.body) == (content_type, body)


def test_no_cookie_is_kept(asking: Asking) -> None:
    asking.bank.said = Said(document={}, headers={"Set-Cookie": "session=body-secret; Path=/"})
    asking.provider.get("/rows")
    asking.provider.get("/rows")
    assert "cookie" not in asking.bank.asked[1].headers


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("0", 0),
        ("30", 30),
        (" 30 ", 30),
        ("86400", 86_400),
        ("86401", 86_400),
        ("9" * 400, 86_400),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_is_read_as_seconds_of_a_day_at_most(asking: Asking, told: str, seconds: float | None) -> None:
    asking.bank.said = Said(status=429, document={}, headers={"Retry-After": told})
    with pytest.raises(RateLimited) as refusal:
        asking.provider.get("/rows")
    assert refusal.value.retry_after == seconds
    assert len(asking.bank.asked) == 1


@pytest.mark.parametrize(("ahead", "seconds"), [(0, 0), (90, 90), (-90, 0), (86_400, 86_400), (86_401, 86_400)])
def test_retry_after_is_read_as_a_date_by_the_clock_of_the_bank(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, ahead: int, seconds: float
) -> None:
    now = datetime(2020, 2, 29, 12, tzinfo=UTC)
    monkeypatch.setattr(Handler, "date_time_string", lambda _: format_datetime(now, usegmt=True))
    until = format_datetime(now + timedelta(seconds=ahead), usegmt=True)
    asking.bank.said = Said(status=429, document={}, headers={"Retry-After": until})
    with pytest.raises(RateLimited) as refusal:
        asking.provider.get("/rows")
    assert refusal.value.retry_after == seconds


@pytest.mark.parametrize(
    "told",
    [
        "Sat, 29 Feb 2020 12:00:00",
        "Sun, 31 Feb 2020 12:00:00 GMT",
        "Sat, 29 Feb 99999999999999999999 12:00:00 GMT",
        "Sat, 29 Feb 2020 12:00:00 +9999",
        "2020-02-29T12:00:00Z",
    ],
)
def test_a_retry_after_that_is_no_date_says_nothing(asking: Asking, told: str) -> None:
    asking.bank.said = Said(status=503, document={}, headers={"Retry-After": told})
    with pytest.raises(ProviderUnavailable) as refusal:
        asking.provider.get("/rows")
    assert refusal.value.retry_after is None


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_get_is_tried_twice_more_where_that_may_help(asking: Asking, status: int) -> None:
    asking.bank.faults.extend([str(status)] * 2)
    assert asking.provider.get("/rows").status == 200
    assert asking.pauses == [0.25, 1.0]
    asking.bank.faults.extend([str(status)] * 3)
    with refused(f"{asking.host} has a fault (status {status})."):
        asking.provider.get("/rows")
    assert len(asking.bank.asked) == 6
    assert not asking.bank.faults


@pytest.mark.parametrize("fault", ["500", "501", "505", "503:30", "429"])
def test_a_get_is_not_tried_again_where_that_cannot_help_or_a_time_is_told(asking: Asking, fault: str) -> None:
    asking.bank.faults.append(fault)
    with pytest.raises(SourceError):
        asking.provider.get("/rows")
    assert (len(asking.bank.asked), asking.pauses) == (1, [])


@pytest.mark.parametrize("status", [502, 503, 504])
def test_what_may_have_been_done_is_not_asked_for_twice(asking: Asking, status: int) -> None:
    asking.bank.faults.extend([str(status)] * 2)
    with pytest.raises(ProviderUnavailable):
        asking.provider.post("/payments", document={"a": 1})
    with pytest.raises(ProviderUnavailable):
        asking.provider.delete("/payments")
    assert (asking.bank.paths(), asking.pauses) == (["POST /payments", "DELETE /payments"], [])


def test_statuses_below_500_are_answers(asking: Asking) -> None:
    for status in (200, 299, 400, 401, 403, 404, 499):
        asking.bank.said = Said(status=status, document={})
        assert asking.provider.get("/rows").status == status
    assert len(asking.bank.asked) == 7


def test_a_bank_that_is_not_there_is_asked_three_times_by_get_alone(asking: Asking) -> None:
    with serving(Parrot()) as gone:
        provider = Provider(gone.address)
    with refused(f"{provider.host} cannot be reached."):
        provider.get("/rows")
    assert asking.pauses == [0.25, 1.0]
    with refused(f"{provider.host} cannot be reached."):
        provider.post("/rows")
    assert asking.pauses == [0.25, 1.0]
    provider.close()


def test_a_bank_that_says_nothing_or_too_slowly_is_not_waited_for(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing_http, "REQUEST_SECONDS_MAX", -1.0)
    asking.bank.said = Said(document={})
    with refused(f"{asking.host} did not answer in time."):
        asking.provider.get("/rows")
    monkeypatch.setattr(outgoing_http, "SILENCE_SECONDS_MAX", 0.05)
    asking.bank.faults.append("silent")
    impatient = Provider(asking.bank.address)
    with refused(f"{asking.host} did not answer in time."):
        impatient.get("/rows")
    impatient.close()


@pytest.mark.parametrize("fault", ["slow-head", "slow-body"])
def test_an_answer_that_comes_byte_by_byte_is_given_up_wherever_it_stands(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(outgoing_http, "REQUEST_SECONDS_MAX", 0.3)
    asking.bank.faults.append(fault)
    with refused(f"{asking.host} did not answer in time.") as refusal:
        asking.provider.get("/rows")
    assert refusal.value.detail == "TimeoutError"
    monkeypatch.setattr(outgoing_http, "REQUEST_SECONDS_MAX", 120.0)
    assert asking.provider.get("/rows").status == 200
    assert len(asking.bank.asked) == 2


@pytest.mark.parametrize(
    "fault", ["500", "503:5", "429:5", "redirect", "malformed", "html", "truncated", "hang-up", "secret"]
)
def test_no_message_tells_a_credential_an_address_or_a_body(asking: Asking, fault: str) -> None:
    asking.bank.said = Said(text='{"token": "body-secret"', headers={"X-Token": "body-secret"})
    asking.bank.faults.extend([] if fault == "secret" else [fault])
    with pytest.raises(SourceError) as refusal:
        asking.provider.get(
            "/customers/customer-55",
            parameters={"code": "code-91c2"},
            headers={"X-Token": "bearer-7f3a"},
            auth=("user", "hunter2"),
        ).members()
    error: BaseException | None = refusal.value
    told = ""
    while error is not None:
        told += f"{error!r} {getattr(error, 'detail', '')}"
        error = error.__cause__
    assert [secret for secret in SECRETS if secret in told] == []
    assert asking.bank.asked[0].headers["authorization"].startswith("Basic ")


def test_whoever_watches_is_told_of_every_try_and_its_status(asking: Asking) -> None:
    seen: list[Exchange] = []
    before = WATCHED_BY.set(seen.append)
    try:
        asking.bank.faults.extend(["503", "hang-up"])
        with pytest.raises(ProviderUnavailable):
            asking.provider.get("/rows")
    finally:
        WATCHED_BY.reset(before)
    assert {(each.request.method, each.request.path) for each in seen} == {("GET", "/rows")}
    assert [each.answer and each.answer.status for each in seen] == [503, None]
