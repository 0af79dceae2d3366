"""What happens at the front door stands in the log: one line each, nobody named, ready for fail2ban where asked for."""

import logging
import re
from collections.abc import Callable
from typing import Any

import pytest

from auth.people.second_factor import SetUp
from auth.people.sessions import Browser
from auth.tokens.refresh_tokens import TokenAnswer

ADDRESS = "testclient"  # what the in-process client is called


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[tuple[str, str]]]:
    """Level and text of the lines since the last call."""
    caplog.set_level(logging.INFO, logger="bankdata.auth")

    def read() -> list[tuple[str, str]]:
        read = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "bankdata.auth"]
        caplog.clear()
        return read

    return read


def said(lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The events alone, without their facts."""
    return [(level, re.split(r" (?=\w+=)", text)[0]) for level, text in lines]


def try_to_sign_in(world: Any, password: str, name: str = "alice") -> int:
    browser = world.browser()
    page = browser.client.get("/oauth/login").text
    token = page.partition('name="form_token" value="')[2].partition('"')[0]
    status: int = browser.client.post(
        "/oauth/login", data={"form_token": token, "username": name, "password": password}
    ).status_code
    return status


@pytest.mark.requirement("oauth.log")
def test_a_wrong_password_is_a_warning_and_names_nobody(fresh: Any, lines: Any) -> None:
    assert try_to_sign_in(fresh, "wrong", "Alice") == 400
    assert try_to_sign_in(fresh, "wrong", "ALICE") == 400
    first, second = lines()
    assert first == second  # one account, however it is written
    level, text = first
    assert level == "WARNING"
    assert re.fullmatch(r"wrong password account=[\w-]{12} address=[\w-]{12}", text)


@pytest.mark.requirement("oauth.log")
def test_addresses_are_printed_where_the_operator_wants_them_for_fail2ban(
    make_world: Callable[..., Any], lines: Any
) -> None:
    world = make_world(shows_addresses=True)
    for _ in range(6):
        try_to_sign_in(world, "wrong")
    texts = [text for _, text in lines()]
    assert [re.sub(r"account=[\w-]{12}", "account=...", text) for text in texts] == [
        *["wrong password account=... address=testclient"] * 5,
        "sign-in held up account=... address=testclient",
    ]


@pytest.mark.requirement("oauth.log")
def test_the_life_of_a_connection_can_be_followed(fresh: Any, lines: Any) -> None:
    tokens = fresh.tokens()
    assert said(lines()) == [("INFO", "client registered"), ("INFO", "signed in"), ("INFO", "consent given")]
    fresh.refresh(tokens["refresh_token"], tokens["client_id"])
    fresh.clock.forward(seconds=61)  # within a minute it would be an honest repetition
    fresh.refresh(tokens["refresh_token"], tokens["client_id"])
    assert said(lines()) == [("WARNING", "refresh token used twice"), ("INFO", "grant ended: refresh token used twice")]
    code, verifier = fresh.browser().code(tokens["client_id"])
    fresh.redeem(code, verifier, tokens["client_id"])
    fresh.redeem(code, verifier, tokens["client_id"])
    assert said(lines())[-2:] == [("WARNING", "code used twice"), ("INFO", "grant ended: code used twice")]
    fresh.redeem("unknown", verifier, tokens["client_id"])
    assert lines() == [("INFO", f"code refused client={tokens['client_id']} reason=unknown")]
    browser = fresh.browser()
    browser.consent(browser.sign_in(browser.authorize(tokens["client_id"])), "deny")
    assert said(lines())[-1] == ("INFO", "consent denied")
    fresh.http.post("/oauth/register", json={"redirect_uris": ["http://bank.example/"]})
    assert said(lines()) == [("WARNING", "registration refused")]
    last = fresh.tokens(tokens["client_id"])
    form = {"token": last["access_token"], "client_id": tokens["client_id"]}
    fresh.http.post("/oauth/revoke", data=form)
    fresh.http.post("/oauth/revoke", data={**form, "token": last["refresh_token"]})
    assert said(lines())[-2:] == [("INFO", "access token revoked by the app"), ("INFO", "grant revoked by the app")]
    fresh.server.rotate_keys()
    assert said(lines()) == [("INFO", "signing key rotated")]


@pytest.mark.requirement("oauth.log")
def test_no_line_holds_a_secret_a_name_or_an_address(fresh: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="bankdata")
    tokens = fresh.tokens()
    code, verifier = fresh.browser().code(tokens["client_id"])
    fresh.redeem(code, verifier, tokens["client_id"])
    fresh.redeem(code, verifier, tokens["client_id"])
    fresh.refresh(tokens["refresh_token"], tokens["client_id"])
    try_to_sign_in(fresh, "a wrong password", "alice")
    written = "\n".join(record.getMessage() for record in caplog.records)
    assert written
    for secret in (code, verifier, tokens["access_token"], tokens["refresh_token"], "umbrella", "a wrong password"):
        assert secret not in written
    assert "alice" not in written.casefold()
    assert ADDRESS not in written


@pytest.mark.requirement("oauth.log")
def test_no_part_of_the_server_shows_its_key_to_a_log_that_names_it(fresh: Any) -> None:
    key = repr(fresh.server.keys.secret("refresh successors"))
    assert [name for name, part in vars(fresh.server).items() if key in repr(part)] == []


@pytest.mark.requirement("oauth.log")
@pytest.mark.parametrize(
    "record",
    [
        Browser(secret="s3cret", id_hash="h", user_id=None),
        SetUp(seed="s3cret", address="otpauth://totp/x?secret=s3cret"),
        TokenAnswer(access_token="s3cret", expires_in=3600, refresh_token="s3cret", scope="read:accounts"),
    ],
    ids=lambda record: type(record).__name__,
)
def test_no_record_with_a_secret_shows_it_to_a_log_that_names_it(record: object) -> None:
    assert "s3cret" not in f"{record} {record!r}"
