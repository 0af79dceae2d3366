"""What Enable Banking is asked and what its answers mean, word for word, against a web server that says anything."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, generate_private_key

from analytics.messages import Message
from analytics.records import Batch, StatementRecord, TransactionRecord
from connectors.connecting import Done, Question, Redirect, Reply, Step
from connectors.connector import (
    CUT_OFF,
    Connection,
    ConsentExpired,
    ConsentRevoked,
    HasNews,
    LeftOut,
    Misconfigured,
    Person,
    ProviderUnavailable,
    RateLimited,
    Ready,
    SourceError,
    UserActionRequired,
)
from connectors.sources.enable_banking.application import NotAccessible, RequestRefused, WrongPeriod
from connectors.sources.enable_banking.connector import COUNTRIES, EnableBanking
from tests.simulators.enable_banking import row
from tests.simulators.web_bank import Asked, Said, WebBank, serving

pytestmark = pytest.mark.requirement("live.enable_banking")

NOW = datetime.fromisoformat("2026-11-20T12:00:00.5")
TODAY = date(2026, 11, 20)
EVA = Person(address="192.0.2.7", user_agent="Firefox", accept="text/html", accept_language="de")
GIRO = {
    "uid": "u1",
    "identification_hash": "giro-hash",
    "account_id": {"iban": "DE89370400440532013000"},
    "name": "Giro",
    "currency": "EUR",
}
KNOWN = {"iban": "DE89370400440532013000", "name": "Giro", "currency": "EUR"}


class Anyone(WebBank):
    """Says what the test has put there for a request, the last of it again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.said: dict[str, list[Said]] = {}

    def answer(self, asked: Asked) -> Said:
        said = self.said[f"{asked.method} {asked.path}"]
        return said.pop(0) if len(said) > 1 else said[0]


@dataclass
class Asking:
    """The server, and the source that asks it."""

    provider: Anyone
    source: EnableBanking
    key_file: Path
    accounts: dict[str, Any] = field(default_factory=lambda: {"giro-hash": KNOWN})
    attended: Person | None = None

    def hears(self, request: str, *said: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """What is said to the request: a document each time."""
        self.provider.said[request] = [Said(status=status, document=each, headers=headers or {}) for each in said]

    def hears_bookings(self, *pages: Any) -> None:
        self.hears("GET /accounts/u1/balances", {"balances": []})
        self.hears("GET /accounts/u1/transactions", *pages)

    def connection(self, session: str | None = "s1", **settings: Any) -> Connection:
        return Connection(
            id="c1",
            user_id="eva",
            bank_name="Beispielbank",
            settings={"accounts": self.accounts, **settings},
            secrets={"session": session} if session else {},
            attended=self.attended,
        )

    def step(self, *, returned: Any = None, memo: Any = None, settings: Any = None, **given: str) -> Step:
        """The next step of connecting, after these answers."""
        reply = Reply(
            return_url="https://bank.example/connect/return",
            state="state-1",
            given=given,
            returned=returned or {},
            memo=memo or {},
        )
        return self.source.next_step(self.connection(None, **settings or {}), reply, now=NOW)

    def poll(self) -> Ready:
        found = self.source.poll_refresh(self.connection(), {}, now=NOW)
        assert isinstance(found, Ready)
        return found

    def fetch(self, key: str = "giro-hash", *, cursor: Any = None) -> list[Batch | LeftOut]:
        handle = {"at": NOW.isoformat(), "accounts": [{"uid": "u1", "key": key}]}
        return list(self.source.fetch(self.connection(), handle, cursor=cursor, today=TODAY))

    def purposes(self, **more: Any) -> tuple[list[str | None], bool]:
        """What the bookings of one account are for, and whether they are all there are."""
        (batch,) = self.fetch(**more)
        assert isinstance(batch, Batch)
        _, *bookings, statement = batch.records
        assert isinstance(statement, StatementRecord)
        said = [each.purpose for each in bookings if isinstance(each, TransactionRecord)]
        return said, statement.is_pending_complete

    def asked_from(self) -> list[str]:
        """The first day that was asked for, request by request."""
        return [each.query["date_from"] for each in self.provider.asked if each.path.endswith("/transactions")]


@cache
def private_key() -> bytes:
    return generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Asking]:
    key_file = tmp_path / "key.pem"
    key_file.write_bytes(private_key())
    with serving(Anyone()) as provider:
        source = EnableBanking(provider.address, application="app-1", key_file=key_file)
        yield Asking(provider, source, key_file)
        source._application._provider.close()


@pytest.mark.parametrize(
    ("status", "error", "kind", "sentence"),
    [
        (
            401,
            "EXPIRED_SESSION",
            ConsentExpired,
            "The consent for this bank connection has expired. Connect the bank again.",
        ),
        (
            401,
            "REVOKED_SESSION",
            ConsentRevoked,
            "The consent for this bank connection was withdrawn. Connect the bank again.",
        ),
        (
            401,
            "CLOSED_SESSION",
            ConsentRevoked,
            "The consent for this bank connection was withdrawn. Connect the bank again.",
        ),
        (
            404,
            "SESSION_DOES_NOT_EXIST",
            ConsentRevoked,
            "The consent for this bank connection was withdrawn. Connect the bank again.",
        ),
        (
            400,
            "ASPSP_PSU_ACTION_REQUIRED",
            UserActionRequired,
            "The bank asks for a sign-in. Renew the connection at the bank.",
        ),
        (400, "ASPSP_RATE_LIMIT_EXCEEDED", RateLimited, "The bank allows no further requests for now."),
        (422, "WRONG_TRANSACTIONS_PERIOD", WrongPeriod, "The bank reports nothing for so short a time."),
        (400, "ASPSP_ACCOUNT_NOT_ACCESSIBLE", NotAccessible, "The bank does not give access to this account."),
        (
            401,
            "UNAUTHORIZED_ACCESS",
            Misconfigured,
            "Enable Banking refuses this server's application: see to it in their control panel.",
        ),
        (402, "", Misconfigured, "Enable Banking refuses this server's application: see to it in their control panel."),
        (403, "", Misconfigured, "Enable Banking refuses this server's application: see to it in their control panel."),
        (400, "ASPSP_ERROR", ProviderUnavailable, "The bank could not be asked through Enable Banking."),
        (404, "", RequestRefused, "The bank could not be asked through Enable Banking."),
    ],
)
def test_each_error_has_its_sentence_and_the_log_its_code(
    asking: Asking, status: int, error: str, kind: type[SourceError], sentence: str
) -> None:
    asking.hears("GET /sessions/s1", {"error": error}, status=status, headers={"Retry-After": "30"})
    with pytest.raises(SourceError) as refused:
        asking.poll()
    assert (type(refused.value), str(refused.value)) == (kind, sentence)
    assert refused.value.detail == f"status {status} {error}".strip()
    assert refused.value.retry_after == (30 if kind is RateLimited else None)


def test_an_error_without_a_code_is_one_all_the_same(asking: Asking) -> None:
    asking.provider.said["GET /sessions/s1"] = [Said(status=400, text="<html>", content_type="text/html")]
    with pytest.raises(ProviderUnavailable) as refused:
        asking.poll()
    assert str(refused.value) == "The bank could not be asked through Enable Banking."
    assert refused.value.detail == "status 400"


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        ("EXPIRED", "The consent for this bank connection has expired. Connect the bank again."),
        ("REVOKED", "The consent for this bank connection was withdrawn. Connect the bank again."),
        ("CLOSED", "The consent for this bank connection was withdrawn. Connect the bank again."),
        ("CANCELLED", "The consent for this bank connection was withdrawn. Connect the bank again."),
        ("PENDING_AUTHORIZATION", "The bank asks for a sign-in. Renew the connection at the bank."),
        (None, "The bank asks for a sign-in. Renew the connection at the bank."),
    ],
)
def test_a_session_that_is_not_authorized_needs_the_person(asking: Asking, status: str | None, sentence: str) -> None:
    asking.hears("GET /sessions/s1", {"status": status, "accounts": []})
    with pytest.raises(SourceError) as refused:
        asking.poll()
    assert str(refused.value) == sentence


def test_a_connection_without_a_session_is_renewed_before_anybody_is_asked(asking: Asking) -> None:
    with pytest.raises(UserActionRequired) as refused:
        asking.source.poll_refresh(asking.connection(None), {}, now=NOW)
    assert str(refused.value) == "The bank asks for a sign-in. Renew the connection at the bank."
    assert asking.provider.paths() == []


@pytest.mark.parametrize(
    ("told", "accounts"),
    [
        (
            {
                "accounts": ["u1", "u2"],
                "accounts_data": [
                    {"uid": "u1", "identification_hash": "giro-hash"},
                    {"uid": "u2"},
                    {"uid": None, "identification_hash": "closed"},
                ],
            },
            [{"uid": "u1", "key": "giro-hash"}, {"uid": "u2", "key": "u2"}],
        ),
        ({"accounts": ["u1"]}, [{"uid": "u1", "key": "u1"}]),
        ({}, []),
    ],
)
def test_a_session_says_which_accounts_it_opens_and_until_when(asking: Asking, told: Any, accounts: Any) -> None:
    asking.hears(
        "GET /sessions/s1", {"status": "AUTHORIZED", "access": {"valid_until": "2027-02-14T10:00:00Z"}, **told}
    )
    ready = asking.poll()
    assert ready.handle == {"at": "2026-11-20T12:00:00.500000", "accounts": accounts}
    assert str(ready.consent_expires_at) == "2027-02-14 10:00:00"


@pytest.mark.parametrize("told", [{"accounts_data": {"uid": "u1"}}, {"accounts": "u1"}, {"access": "for ever"}])
def test_a_session_that_is_not_what_is_described_is_refused(asking: Asking, told: Any) -> None:
    asking.hears("GET /sessions/s1", {"status": "AUTHORIZED", **told})
    with pytest.raises(ProviderUnavailable) as refused:
        asking.poll()
    assert str(refused.value) == "Enable Banking sent a damaged answer."


def test_every_request_is_signed_by_the_application_for_an_hour(asking: Asking) -> None:
    asking.hears("GET /sessions/s1", {"status": "AUTHORIZED"})
    asking.poll()
    scheme, _, token = asking.provider.asked[0].headers["authorization"].partition(" ")
    public = serialization.load_pem_private_key(private_key(), None).public_key()
    assert isinstance(public, RSAPublicKey)
    claims = jwt.decode(
        token, public, ["RS256"], audience="api.enablebanking.com", options={"verify_exp": False, "verify_iat": False}
    )
    assert scheme == "Bearer"
    assert jwt.get_unverified_header(token) == {"alg": "RS256", "typ": "JWT", "kid": "app-1"}
    assert claims == {
        "iss": "enablebanking.com",
        "aud": "api.enablebanking.com",
        "iat": 1_795_176_000,  # 2026-11-20T12:00:00Z
        "exp": 1_795_179_600,
    }


@pytest.mark.parametrize(
    ("attended", "said"),
    [
        (None, {}),
        (
            EVA,
            {
                "psu-ip-address": "192.0.2.7",
                "psu-user-agent": "Firefox",
                "psu-accept": "text/html",
                "psu-accept-language": "de",
            },
        ),
    ],
)
def test_the_bank_is_told_of_a_person_everything_or_nothing(
    asking: Asking, attended: Person | None, said: dict[str, str]
) -> None:
    asking.attended = attended
    asking.hears("GET /sessions/s1", {"status": "AUTHORIZED"})
    asking.hears_bookings({"transactions": []})
    asking.poll()
    asking.fetch()
    psu = [{name: text for name, text in each.headers.items() if name[:4] == "psu-"} for each in asking.provider.asked]
    assert psu == [said] * 4  # the bookings are asked for twice the first time


@pytest.mark.parametrize(("application", "has_key"), [("", True), ("app-1", False), ("", False)])
def test_a_server_without_an_application_says_what_the_operator_sets(
    asking: Asking, application: str, has_key: bool
) -> None:
    source = EnableBanking(
        asking.provider.address, application=application, key_file=asking.key_file if has_key else None
    )
    assert asking.source.is_set_up
    assert not source.is_set_up
    with pytest.raises(Misconfigured) as refused:
        source.poll_refresh(asking.connection(), {}, now=NOW)
    assert str(refused.value) == (
        "Enable Banking is not set up here: the operator sets BANKDATA_ENABLE_BANKING_APPLICATION and"
        " BANKDATA_ENABLE_BANKING_KEY_FILE."
    )


@pytest.mark.parametrize("content", [None, b"", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_a_key_file_that_is_not_there_or_holds_no_key_is_named(asking: Asking, content: bytes | None) -> None:
    if content is None:
        asking.key_file.unlink()
    else:
        asking.key_file.write_bytes(content)
    with pytest.raises(Misconfigured) as refused:
        asking.poll()
    assert str(refused.value) == "The key file of Enable Banking cannot be used: see BANKDATA_ENABLE_BANKING_KEY_FILE."
    assert asking.provider.paths() == []


def question(step: Step) -> tuple[Message, Message | None, tuple[tuple[str, str], ...]]:
    """What is asked, what was wrong, and what there is to choose from."""
    assert isinstance(step, Question)
    asked = step.fields[0]
    return step.text, step.problem, tuple(asked.choices)


def test_the_person_names_a_country_and_chooses_one_of_its_banks(asking: Asking) -> None:
    asking.hears("GET /aspsps", {"aspsps": [{"name": "Sparkasse"}, {"name": "die bank"}, {"name": None}]})
    country = Message("In which country is your bank?")
    no_country = Message("Two letters, such as DE or AT.")
    bank = Message("Which bank is it? You sign in there.")
    no_bank = Message("This bank is not in the list.")
    banks = (("die bank", "die bank"), ("Sparkasse", "Sparkasse"))
    assert question(asking.step()) == (country, None, COUNTRIES)
    assert question(asking.step(country="Germany")) == (country, no_country, COUNTRIES)
    assert asking.provider.paths() == []
    assert question(asking.step(country=" de ")) == (bank, None, banks)
    assert asking.provider.asked[0].query == {"country": "DE", "psu_type": "personal"}
    assert question(asking.step(country="DE", bank="Volksbank")) == (bank, no_bank, banks)


def test_a_bank_is_found_by_the_beginning_of_its_name(asking: Asking) -> None:
    names = ("ING", "ING Business", "Sparkasse Köln", "Sparkasse Ulm")
    asking.hears("GET /aspsps", {"aspsps": [{"name": each, "maximum_consent_validity": 100} for each in names]})
    asking.hears("POST /auth", {"url": "https://bank.example/auth"})
    several = Message("Several banks begin so. Choose yours.")
    here = (("Sparkasse Köln", "Sparkasse Köln"), ("Sparkasse Ulm", "Sparkasse Ulm"))
    assert question(asking.step(country="DE", bank="spark"))[1:] == (several, here)
    for typed in ("sparkasse u", "ing"):
        assert isinstance(asking.step(country="DE", bank=typed), Redirect)
    asked = [each.document()["aspsp"]["name"] for each in asking.provider.asked if each.path == "/auth"]
    assert asked == ["Sparkasse Ulm", "ING"]


@pytest.mark.parametrize("told", [{}, {"aspsps": ["Sparkasse"]}, {"aspsps": None}])
def test_a_list_of_banks_that_is_none_is_refused(asking: Asking, told: Any) -> None:
    asking.hears("GET /aspsps", told)
    with pytest.raises(ProviderUnavailable) as refused:
        asking.step(country="DE")
    assert str(refused.value) == "Enable Banking sent a damaged answer."


@pytest.mark.parametrize(
    ("longest", "until"),
    [
        (90 * 86_400, "2027-02-18T12:00:00+00:00"),
        (180 * 86_400, "2027-05-19T12:00:00+00:00"),
        (181 * 86_400, "2027-05-19T12:00:00+00:00"),
        (10**40, "2027-05-19T12:00:00+00:00"),
        (1, "2026-11-20T12:00:01+00:00"),
        (0, "2027-05-19T12:00:00+00:00"),
        (None, "2027-05-19T12:00:00+00:00"),
    ],
)
def test_the_person_is_sent_to_the_bank_for_as_long_a_consent_as_it_and_the_law_allow(
    asking: Asking, longest: int | None, until: str
) -> None:
    asking.hears("GET /aspsps", {"aspsps": [{"name": "Sparkasse", "maximum_consent_validity": longest}]})
    asking.hears("POST /auth", {"url": "https://sparkasse.example/sign-in?id=7"})
    step = asking.step(country="DE", bank="sparkasse")
    assert step == Redirect(url="https://sparkasse.example/sign-in?id=7", memo={"bank": "Sparkasse", "country": "DE"})
    assert asking.provider.asked[-1].document() == {
        "access": {"valid_until": until},
        "aspsp": {"name": "Sparkasse", "country": "DE"},
        "state": "state-1",
        "redirect_url": "https://bank.example/connect/return",
        "psu_type": "personal",
    }


def test_a_renewal_goes_to_the_same_bank_without_a_question(asking: Asking) -> None:
    asking.hears("GET /aspsps", {"aspsps": [{"name": "Sparkasse"}]})
    asking.hears("POST /auth", {"url": "https://sparkasse.example/"})
    step = asking.step(settings={"bank": "Sparkasse", "country": "DE"})
    assert step == Redirect(url="https://sparkasse.example/", memo={"bank": "Sparkasse", "country": "DE"})


@pytest.mark.parametrize("told", [{}, {"url": None}, {"url": "javascript:alert(1)"}, {"url": "http://bank.example/"}])
def test_nobody_is_sent_to_an_address_that_cannot_be_opened(asking: Asking, told: Any) -> None:
    asking.hears("GET /aspsps", {"aspsps": [{"name": "Sparkasse"}]})
    asking.hears("POST /auth", told)
    with pytest.raises(ProviderUnavailable) as refused:
        asking.step(country="DE", bank="Sparkasse")
    assert str(refused.value) == "Enable Banking sent an address that cannot be opened."


def test_the_code_is_exchanged_for_a_session_and_what_the_bank_says_of_the_accounts(asking: Asking) -> None:
    asking.hears(
        "POST /sessions",
        {"session_id": "s-1", "accounts": [GIRO, {"uid": "u2"}], "access": {"valid_until": "2027-02-14T10:00:00Z"}},
    )
    done = asking.step(returned={"code": "code-1", "state": "state-1"}, memo={"bank": "Sparkasse", "country": "DE"})
    nothing = dict.fromkeys(("iban", "name", "product", "kind", "currency", "bic"))
    assert isinstance(done, Done)
    assert asking.provider.asked[0].document() == {"code": "code-1"}
    assert (done.bank_name, done.secrets) == ("Sparkasse", {"session": "s-1"})
    assert done.settings == {
        "bank": "Sparkasse",
        "country": "DE",
        "accounts": {"giro-hash": {**nothing, **KNOWN}, "u2": nothing},
    }
    assert str(done.consent_expires_at) == "2027-02-14 10:00:00"


def test_a_code_without_a_memory_of_the_bank_keeps_the_name_of_the_connection(asking: Asking) -> None:
    asking.hears("POST /sessions", {"session_id": "s-1", "accounts": []})
    done = asking.step(returned={"code": "code-1"})
    assert done == Done(
        bank_name="Beispielbank",
        settings={"bank": "Beispielbank", "country": "", "accounts": {}},
        secrets={"session": "s-1"},
    )


def test_who_declines_at_the_bank_has_connected_nothing(asking: Asking) -> None:
    with pytest.raises(UserActionRequired) as refused:
        asking.step(returned={"error": "access_denied", "state": "state-1"})
    assert str(refused.value) == "The bank gave no access, or you declined it. Nothing was connected."
    assert refused.value.detail == "access_denied"
    assert asking.provider.paths() == []


@pytest.mark.parametrize(
    "told",
    [
        {"accounts": []},
        {"session_id": 7, "accounts": []},
        {"session_id": "../accounts", "accounts": []},
        {"session_id": "s" * 101, "accounts": []},
        {"session_id": "s-1"},
        {"session_id": "s-1", "accounts": ["u1"]},
    ],
)
def test_an_exchange_that_is_not_what_is_described_connects_nothing(asking: Asking, told: Any) -> None:
    asking.hears("POST /sessions", told)
    with pytest.raises(ProviderUnavailable) as refused:
        asking.step(returned={"code": "code-1"})
    assert str(refused.value) == "Enable Banking sent a damaged answer."


def test_ending_a_connection_ends_its_session(asking: Asking) -> None:
    asking.hears("DELETE /sessions/s1", {"message": "OK"})
    asking.source.disconnect(asking.connection(), now=NOW)
    asking.source.disconnect(asking.connection(None), now=NOW)
    assert asking.provider.paths() == ["DELETE /sessions/s1"]


@pytest.mark.parametrize("error", ["EXPIRED_SESSION", "REVOKED_SESSION", "CLOSED_SESSION", "SESSION_DOES_NOT_EXIST"])
def test_a_session_that_is_over_already_is_as_good_as_ended(asking: Asking, error: str) -> None:
    asking.hears("DELETE /sessions/s1", {"error": error}, status=401)
    asking.source.disconnect(asking.connection(), now=NOW)
    assert asking.provider.paths() == ["DELETE /sessions/s1"]


def test_a_session_that_cannot_be_ended_is_said(asking: Asking) -> None:
    asking.hears("DELETE /sessions/s1", {"error": "ASPSP_ERROR"}, status=400)
    with pytest.raises(ProviderUnavailable) as refused:
        asking.source.disconnect(asking.connection(), now=NOW)
    assert str(refused.value) == "The bank could not be asked through Enable Banking."


def test_all_pages_are_read_and_a_row_that_begins_the_next_page_again_is_one(asking: Asking) -> None:
    first, second, third = (row(f"r{each}", "2026-11-19", "-1.00", f"Row {each}") for each in (1, 2, 3))
    nameless = row(None, "2026-11-19", "-1.00", "Kiosk")
    asking.hears_bookings(
        {"transactions": [first, nameless, {**second, "transaction_id": "a"}], "continuation_key": "k1"},
        {"transactions": [{**second, "transaction_id": "b"}, nameless, third], "continuation_key": None},
    )
    assert asking.purposes() == (["Row 1", "Kiosk", "Row 2", "Kiosk", "Row 3"], True)
    pages = [each.query for each in asking.provider.asked if each.path.endswith("/transactions")]
    assert pages[:2] == [{"date_from": "2025-11-20"}, {"date_from": "2025-11-20", "continuation_key": "k1"}]


KIOSK, BAKER = (row(None, "2026-11-19", "-1.00", text) for text in ("Kiosk", "Baker"))
DAY_BEFORE = row(None, "2026-11-18", "-1.00", "Kiosk")
NAMED = row("r1", "2026-11-19", "-1.00", "Named")


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        ([BAKER, KIOSK, DAY_BEFORE], [KIOSK, DAY_BEFORE, DAY_BEFORE], 4),
        ([BAKER, NAMED, KIOSK], [NAMED, KIOSK, KIOSK], 4),
        ([BAKER, KIOSK], [BAKER, KIOSK], 4),  # may be four on one day
        ([DAY_BEFORE, KIOSK], [DAY_BEFORE], 3),
        ([KIOSK, DAY_BEFORE], [DAY_BEFORE, KIOSK], 4),
    ],
)
def test_rows_without_a_reference_are_counted_once_where_it_is_proven_that_the_list_has_moved(
    asking: Asking, first: list[Any], second: list[Any], count: int
) -> None:
    asking.hears_bookings({"transactions": first, "continuation_key": "k1"}, {"transactions": second})
    purposes, _ = asking.purposes()
    assert len(purposes) == count


def test_the_first_time_the_bank_is_asked_for_the_longest_that_it_gives_and_only_what_is_older_counts(
    asking: Asking,
) -> None:
    of_a_year = [row("r9", "2026-11-19", "-1.00", "Today"), row("r8", "2025-11-20", "-1.00", "First day")]
    longest = [
        row("r8", "2025-11-20", "-1.00", "First day"),
        row("r7", "2025-11-19", "-1.00", "The day before"),
        {**row("r6", "2017-01-01", "-1.00", "Long ago"), "booking_date": None, "value_date": "2017-01-01"},
    ]
    asking.hears_bookings(
        {"transactions": of_a_year},
        {"transactions": longest[:2], "continuation_key": "k1"},
        {"transactions": longest[2:]},
    )
    (batch,) = asking.fetch()
    assert isinstance(batch, Batch)
    _, *bookings, statement = batch.records
    assert [each.purpose for each in bookings if isinstance(each, TransactionRecord)] == [
        "Today",
        "First day",
        "The day before",
        "Long ago",
    ]
    assert isinstance(statement, StatementRecord)
    assert statement.told_from == date(2025, 11, 20)
    asked = [each.query for each in asking.provider.asked if each.path.endswith("/transactions")]
    assert asked[1:] == [
        {"date_from": "2015-11-01", "strategy": "longest"},
        {"date_from": "2015-11-01", "strategy": "longest", "continuation_key": "k1"},
    ]
    asking.provider.asked.clear()
    asking.fetch(cursor=batch.cursor)
    assert [each.query for each in asking.provider.asked if each.path.endswith("/transactions")] == [
        {"date_from": "2026-10-16"}
    ]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (422, "WRONG_TRANSACTIONS_PERIOD"),
        (422, "WRONG_REQUEST_PARAMETERS"),
        (400, "ASPSP_ERROR"),
        (429, "ASPSP_RATE_LIMIT_EXCEEDED"),
        (400, "ASPSP_ACCOUNT_NOT_ACCESSIBLE"),
    ],
)
def test_a_bank_that_gives_no_longest_time_has_told_what_it_has(asking: Asking, status: int, error: str) -> None:
    asking.hears("GET /accounts/u1/balances", {"balances": []})
    asking.provider.said["GET /accounts/u1/transactions"] = [
        Said(document={"transactions": [row("r1", "2026-11-19", "-1.00", "Row 1")]}),
        Said(status=status, document={"error": error}),
    ]
    assert asking.purposes() == (["Row 1"], True)


GOES_ROUND = ({"transactions": [], "continuation_key": "k1"}, 200)
REFUSED = ({"error": "WRONG_REQUEST_PARAMETERS"}, 422)
TOO_LONG = ({"error": "WRONG_TRANSACTIONS_PERIOD"}, 422)


@pytest.mark.parametrize(("second", "status"), [GOES_ROUND, REFUSED, TOO_LONG])
def test_pages_that_go_round_or_are_refused_end_the_round_of_their_account_and_leave_its_cursor(
    asking: Asking, second: Any, status: int
) -> None:
    asking.hears("GET /accounts/u1/balances", {"balances": []})
    first = {"transactions": [row("r1", "2026-11-19", "-1.00", "Row 1")], "continuation_key": "k1"}
    asking.provider.said["GET /accounts/u1/transactions"] = [Said(document=first), Said(status=status, document=second)]
    batch, left_out = asking.fetch(cursor={"until": {"giro-hash": "2026-11-01", "card": "2026-11-02"}})
    assert isinstance(batch, Batch)
    *_, booking, statement = batch.records
    assert isinstance(booking, TransactionRecord)
    assert isinstance(statement, StatementRecord)
    assert (booking.purpose, statement.is_pending_complete) == ("Row 1", False)
    assert batch.cursor == {"until": {"giro-hash": "2026-11-01", "card": "2026-11-02"}}
    assert left_out == LeftOut(name="Giro", reason=CUT_OFF)
    assert len(asking.asked_from()) == 2


def test_a_bank_that_is_away_at_the_second_page_ends_the_sync(asking: Asking) -> None:
    asking.hears("GET /accounts/u1/balances", {"balances": []})
    first = {"transactions": [], "continuation_key": "k1"}
    away = Said(status=500, document={"error": "ASPSP_ERROR"})
    asking.provider.said["GET /accounts/u1/transactions"] = [Said(document=first), away]
    with pytest.raises(ProviderUnavailable):
        asking.fetch()


@pytest.mark.parametrize(("pages", "is_read"), [(3, True), (4, False)])
def test_a_list_without_an_end_is_given_up_for_its_account(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, pages: int, is_read: bool
) -> None:
    monkeypatch.setattr("connectors.sources.enable_banking.connector.PAGES_MAX", 3)
    asking.hears_bookings(
        *({"transactions": [], "continuation_key": f"k{each}"} for each in range(1, pages)), {"transactions": []}
    )
    if is_read:
        assert asking.purposes() == ([], True)
        return
    assert asking.fetch() == [LeftOut(name="Giro", reason="The bank's list of transactions has no end.")]
    assert len(asking.asked_from()) == 3


@pytest.mark.parametrize(
    ("cursor", "days"),
    [
        (None, ["2025-11-20", "2026-08-22", "2026-10-23"]),
        ({"until": {"giro-hash": "2026-11-20"}}, ["2026-10-16", "2026-10-23"]),
        ({"until": {"giro-hash": "2026-10-26"}}, ["2026-10-16", "2026-10-23"]),
        ({"until": {"giro-hash": "2026-10-25"}}, ["2026-10-15", "2026-10-23"]),
        ({"until": {"giro-hash": "2026-08-20"}}, ["2026-08-10", "2026-08-22", "2026-10-23"]),
        ({"until": {"giro-hash": "2025-01-01"}}, ["2025-11-20", "2026-08-22", "2026-10-23"]),
    ],
)
def test_a_bank_that_tells_less_is_asked_for_less_until_it_tells_nothing(
    asking: Asking, cursor: Any, days: list[str]
) -> None:
    asking.hears_bookings({})
    asking.hears("GET /accounts/u1/transactions", {"error": "WRONG_TRANSACTIONS_PERIOD"}, status=422)
    with pytest.raises(WrongPeriod) as refused:
        asking.fetch(cursor=cursor)
    assert str(refused.value) == "The bank reports nothing for so short a time."
    assert asking.asked_from() == days


@pytest.mark.parametrize(
    ("cursor", "others"),
    [
        (None, {}),
        ({"until": {"other": "2026-11-19"}}, {"other": "2026-11-19"}),
        ({"until": {"other": "2026-11-19", "giro-hash": "2026-11-01"}}, {"other": "2026-11-19"}),
        ({"loaded": ["giro-hash"]}, {}),
    ],
)
def test_until_when_an_account_was_read_is_remembered_with_its_batch(
    asking: Asking, cursor: Any, others: dict[str, str]
) -> None:
    asking.hears_bookings({"transactions": []})
    (batch,) = asking.fetch(cursor=cursor)
    assert isinstance(batch, Batch)
    assert batch.id == "enable-banking:c1:giro-hash:2026-11-20T12:00:00.500000"
    assert batch.name == "Giro"
    assert batch.cursor == {"until": {**others, "giro-hash": "2026-11-20"}}


def test_an_account_that_was_not_there_when_the_bank_was_connected_is_asked_for(asking: Asking) -> None:
    asking.accounts = {}
    asking.hears("GET /accounts/u1/details", {**GIRO, "name": "New"})
    asking.hears_bookings({"transactions": []})
    (batch,) = asking.fetch()
    assert isinstance(batch, Batch)
    assert batch.name == "New"


@pytest.mark.parametrize(
    ("request_refused", "known", "name"),
    [
        ("GET /accounts/u1/details", None, "giro-has"),
        ("GET /accounts/u1/balances", KNOWN, "Giro"),
        ("GET /accounts/u1/transactions", {"iban": "DE89370400440532013000", "currency": "EUR"}, "giro-has"),
    ],
)
def test_an_account_that_the_bank_refuses_is_left_out_whatever_it_refuses(
    asking: Asking, request_refused: str, known: Any, name: str
) -> None:
    asking.accounts = {"giro-hash": known} if known else {}
    asking.hears_bookings({"transactions": []})
    asking.hears(request_refused, {"error": "ASPSP_ACCOUNT_NOT_ACCESSIBLE"}, status=400)
    assert asking.fetch() == [LeftOut(name=name, reason="The bank does not give access to this account.")]


@pytest.mark.parametrize(
    ("known", "name"),
    [
        ({"name": "Miles", "currency": "XXX"}, "Miles"),
        ({"iban": "DE89370400440532013000", "currency": "points"}, "DE89370400440532013000"),
        ({"kind": "CARD"}, "giro-has"),
    ],
)
def test_an_account_without_a_currency_is_left_out(asking: Asking, known: Any, name: str) -> None:
    asking.accounts = {"giro-hash": known}
    asking.hears_bookings({"transactions": []})
    assert asking.fetch() == [LeftOut(name=name, reason="It has no currency that is known here.")]


@pytest.mark.parametrize(
    ("request_damaged", "told"),
    [
        ("GET /accounts/u1/balances", {}),
        ("GET /accounts/u1/balances", {"balances": [1]}),
        ("GET /accounts/u1/transactions", {}),
        ("GET /accounts/u1/transactions", {"transactions": {}}),
    ],
)
def test_data_that_are_not_what_is_described_end_the_sync(asking: Asking, request_damaged: str, told: Any) -> None:
    asking.hears_bookings({"transactions": []})
    asking.hears(request_damaged, told)
    with pytest.raises(ProviderUnavailable) as refused:
        asking.fetch()
    assert str(refused.value) == "Enable Banking sent a damaged answer."


def test_nothing_is_asked_before_or_after_the_data(asking: Asking) -> None:
    batch = Batch(id="b1", records=iter(()))
    assert asking.source.start_refresh(asking.connection(), now=NOW) == {"at": "2026-11-20T12:00:00.500000"}
    asking.source.settle(asking.connection(), {}, batch=batch, refusal=None)
    assert not isinstance(asking.source, HasNews)
    assert asking.provider.paths() == []
