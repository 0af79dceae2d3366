"""Attacks on the sign-in at the household's provider: each is named, and lets nobody in."""

import base64
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from auth.people.identity_provider import TOKEN_LENGTH_MAX
from auth.people.provider_metadata import ProviderReply
from tests.oauth.conftest import World, fields, parameters
from tests.oauth.openid.provider import (
    CLIENT,
    ISSUER,
    KEY,
    OTHER_KEY,
    Provider,
    as_json,
    comes_back,
    is_in,
    jwk,
    linked,
    settings,
    signed,
    signs_in,
    to_provider,
)

PUBLIC_PEM = KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
Claims = dict[str, Any]


@pytest.fixture(scope="module")
def home(make_shared_world: Callable[..., World]) -> tuple[World, Provider]:
    provider = Provider()
    world = make_shared_world(provider=settings(groups_claim="groups", groups=frozenset({"family"})), ask=provider)
    provider.clock = world.clock
    linked(world, provider)
    return world, provider


@pytest.fixture
def evil(home: tuple[World, Provider]) -> tuple[World, Provider]:
    """A world whose provider tells the truth until a test makes it lie, and does so again afterwards."""
    world, provider = home
    honest = Provider(clock=world.clock, claims={"groups": ["family"]})
    for name in ("subject", "claims", "userinfo", "metadata", "keys", "lies", "sign", "replies", "signed_in_at"):
        setattr(provider, name, getattr(honest, name))
    return world, provider


@pytest.fixture
def other_home(make_world: Callable[..., World]) -> Callable[..., tuple[World, Provider]]:
    """Worlds of their own: for metadata and keys, which are remembered."""

    def make(**changed: Any) -> tuple[World, Provider]:
        provider = Provider()
        world = make_world(provider=settings(**changed), ask=provider)
        provider.clock = world.clock
        linked(world, provider)
        return world, provider

    return make


def raw(header: Claims, claims: Claims, signature: bytes = b"") -> str:
    parts = [json.dumps(header).encode(), json.dumps(claims).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def by_hmac(claims: Claims, key: bytes) -> str:
    """A token of which whoever checks by the header's algorithm would take a public text for the key."""
    import hashlib
    import hmac

    said = raw({"alg": "HS256", "typ": "JWT", "kid": "k1"}, claims).rstrip(".")
    digest = hmac.new(key, said.encode(), hashlib.sha256).digest()
    return f"{said}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def embedded(claims: Claims) -> str:
    return signed(claims, OTHER_KEY, jwk=jwk(OTHER_KEY, "k1"))


TOKENS: dict[str, Callable[[Claims], Any]] = {
    "the algorithm none": lambda claims: raw({"alg": "none", "kid": "k1"}, claims),
    "the algorithm None in other letters": lambda claims: raw({"alg": "NoNe", "kid": "k1"}, claims),
    "the public key as the secret of HS256": lambda claims: by_hmac(claims, PUBLIC_PEM),
    "the client's secret as that of HS256": lambda claims: by_hmac(claims, b"s3cret"),
    "another key of the same kid": lambda claims: signed(claims, OTHER_KEY),
    "a key within the token": embedded,
    "a key at an address within the token": lambda claims: signed(claims, OTHER_KEY, jku="https://evil.example/keys"),
    "a certificate at an address within the token": lambda claims: signed(
        claims, OTHER_KEY, x5u="https://evil.example"
    ),
    "an unknown kid": lambda claims: signed(claims, OTHER_KEY, kid="../../k1"),
    "a critical extension": lambda claims: signed(claims, crit=["exp"]),
    "an access token in place of the ID token": lambda claims: signed(claims, typ="at+jwt"),
    "a logout token in place of the ID token": lambda claims: signed(claims, typ="logout+jwt"),
    "no signature": lambda claims: signed(claims).rpartition(".")[0] + ".",
    "a signature of other claims": lambda claims: raw(
        {"alg": "RS256", "kid": "k1"}, {**claims, "sub": "other"}, b"x" * 256
    ),
    "an algorithm that the metadata do not name": lambda claims: signed(claims, algorithm="RS512"),
    "five parts": lambda claims: signed(claims) + ".a.b",
    "a token without an end": lambda claims: signed({**claims, "much": "x" * TOKEN_LENGTH_MAX}),
    "no token": lambda _claims: None,
    "a list of tokens": lambda claims: [signed(claims)],
}

LIES: dict[str, Claims] = {
    "another issuer": {"iss": "https://evil.example"},
    "the issuer with a slash more": {"iss": f"{ISSUER}/"},
    "no issuer": {"iss": None},
    "another client": {"aud": "other"},
    "an audience that begins alike": {"aud": f"{CLIENT}-2"},
    "several clients and nobody asked": {"aud": [CLIENT, "other"]},
    "several clients, asked for by another one": {"aud": [CLIENT, "other"], "azp": "other"},
    "asked for by another one": {"azp": "other"},
    "an audience that is no text": {"aud": {CLIENT: 1}},
    "a nonce of another sign-in": {"nonce": "n-0S6_WzA2Mj"},
    "no nonce": {"nonce": None},
    "expired": {"exp": 1_000_000_000},
    "no end": {"exp": None},
    "an end that is a text": {"exp": "9999999999"},
    "an end that is true": {"exp": True},
    "of the future": {"iat": 9_999_999_999},
    "no time": {"iat": None},
    "not before next year": {"nbf": 9_999_999_999},
    "no subject": {"sub": None},
    "a subject that is a number": {"sub": 248289761001},
    "an empty subject": {"sub": ""},
    "a subject with another line": {"sub": "a\nb"},
    "a subject in other letters": {"sub": "248289761001 "},
    "no group that may enter": {"groups": ["guests"]},
    "a group that only contains the right one": {"groups": "family,x"},
}


@pytest.mark.requirement("oauth.provider_attacks")
@pytest.mark.parametrize("attack", TOKENS)
def test_a_forged_token_lets_nobody_in(evil: tuple[World, Provider], attack: str) -> None:
    world, provider = evil
    provider.sign = TOKENS[attack]
    browser, answer = signs_in(world, provider)
    assert (answer.status_code, is_in(browser)) == (400, False)


@pytest.mark.requirement("oauth.provider_attacks")
@pytest.mark.parametrize("attack", LIES)
def test_a_signed_token_for_something_else_lets_nobody_in(evil: tuple[World, Provider], attack: str) -> None:
    world, provider = evil

    def lies(claims: Claims) -> None:
        claims.update(LIES[attack])
        for name in [name for name, value in claims.items() if value is None]:
            del claims[name]

    provider.lies = lies
    browser, answer = signs_in(world, provider)
    assert (answer.status_code in (400, 403), is_in(browser)) == (True, False)


@pytest.mark.requirement("oauth.provider_attacks")
def test_the_truth_is_let_in_among_all_these(evil: tuple[World, Provider]) -> None:
    assert is_in(signs_in(*evil)[0])


RESPONSES: dict[str, dict[str, Any]] = {
    "of another issuer (mix-up)": {"iss": "https://evil.example"},
    "without the issuer that was promised": {"iss": None},
    "with a state of nobody's": {"state": "x" * 43},
    "without a state": {"state": None},
    "without a code": {"code": None},
    "with a code of nobody's": {"code": "c999"},
    "with an error beside the code": {"error": "access_denied"},
}


@pytest.mark.requirement("oauth.provider_attacks")
@pytest.mark.parametrize("attack", RESPONSES)
def test_a_forged_response_lets_nobody_in(evil: tuple[World, Provider], attack: str) -> None:
    browser, answer = signs_in(*evil, **RESPONSES[attack])
    assert (answer.status_code, is_in(browser)) == (400, False)


@pytest.mark.requirement("oauth.provider_attacks")
def test_a_response_that_somebody_else_began_does_not_sign_this_browser_in(evil: tuple[World, Provider]) -> None:
    world, provider = evil
    attacker, victim = world.browser(), world.browser()
    victim.client.get("/oauth/login")
    address = to_provider(attacker)
    assert comes_back(victim, provider, address).status_code == 400
    assert not is_in(victim)
    bare = world.browser()
    assert comes_back(bare, provider, address).status_code == 400, "no session at all"
    assert is_in(attacker) is False


@pytest.mark.requirement("oauth.provider_attacks")
def test_a_response_counts_once(evil: tuple[World, Provider]) -> None:
    world, provider = evil
    browser = world.browser()
    sent = provider.sends_back(to_provider(browser))
    before = dict(browser.client.cookies)
    assert browser.client.get("/oauth/oidc/callback", params=sent).status_code == 303
    thief = world.browser()
    thief.client.cookies.update(before)
    assert thief.client.get("/oauth/oidc/callback", params=sent).status_code == 400
    assert not is_in(thief)


@pytest.mark.requirement("oauth.provider_attacks")
def test_a_response_after_ten_minutes_is_over(other_home: Callable[..., tuple[World, Provider]]) -> None:
    world, provider = other_home()
    browser = world.browser()
    address = to_provider(browser)
    world.clock.forward(minutes=10)
    assert comes_back(browser, provider, address).status_code == 400
    assert not is_in(browser)


@pytest.mark.requirement("oauth.provider_attacks")
def test_two_codes_or_two_states_are_refused(evil: tuple[World, Provider]) -> None:
    world, provider = evil
    browser = world.browser()
    sent = provider.sends_back(to_provider(browser))
    for name in ("code", "state", "iss"):
        doubled = [*sent.items(), (name, "other")]
        assert browser.client.get("/oauth/oidc/callback", params=urlencode(doubled)).status_code == 400
    assert not is_in(browser)


@pytest.mark.requirement("oauth.provider_attacks")
def test_the_code_of_another_sign_in_does_not_fit(evil: tuple[World, Provider]) -> None:
    world, provider = evil
    victim, attacker = world.browser(), world.browser()
    stolen = provider.sends_back(to_provider(victim))["code"]
    assert comes_back(attacker, provider, to_provider(attacker), code=stolen).status_code == 400
    assert not is_in(attacker)


@pytest.mark.requirement("oauth.provider_attacks")
def test_userinfo_of_somebody_else_counts_for_nothing(evil: tuple[World, Provider]) -> None:
    world, provider = evil
    provider.claims, provider.userinfo = {}, {"sub": "other", "groups": ["family"]}
    browser, answer = signs_in(world, provider)
    assert (answer.status_code, is_in(browser)) == (400, False)


@pytest.mark.requirement("oauth.provider_attacks")
@pytest.mark.parametrize(
    "sent",
    [
        as_json(["id_token"]),
        as_json({"error": "invalid_grant<script>"}, 400),
        ProviderReply(status=200, media_type="text/html", body=b"<html>"),
        ProviderReply(status=200, media_type="application/json", body=b"[" * 100_000),
        ProviderReply(status=200, media_type="application/json", body=b"\xff"),
    ],
    ids=["a list", "an error", "a page", "much nesting", "no text"],
)
def test_a_strange_answer_of_the_token_endpoint_lets_nobody_in(
    evil: tuple[World, Provider], sent: ProviderReply
) -> None:
    world, provider = evil
    provider.replies["token"] = sent
    browser, answer = signs_in(world, provider)
    assert (answer.status_code, is_in(browser), "script>" in answer.text) == (400, False, False)


@pytest.mark.requirement("oauth.provider_attacks")
def test_an_email_or_name_of_somebody_else_links_nobody(evil: tuple[World, Provider]) -> None:
    world, provider = evil
    provider.subject = "another"
    provider.claims |= {"preferred_username": "alice", "email": "alice@example.org", "email_verified": True}
    browser, answer = signs_in(world, provider)
    assert (answer.status_code, is_in(browser)) == (400, False)


METADATA: dict[str, Claims] = {
    "of another issuer": {"issuer": "https://evil.example"},
    "of an issuer below": {"issuer": f"{ISSUER}/other"},
    "a token endpoint in clear": {"token_endpoint": "http://id.example/token"},
    "keys on this machine": {"jwks_uri": "http://127.0.0.1:8000/keys"},
    "keys in a file": {"jwks_uri": "file:///etc/passwd"},
    "an endpoint with a password": {"token_endpoint": "https://a:b@id.example/token"},
    "an endpoint with another line": {"authorization_endpoint": "https://id.example/\r\nSet-Cookie: a=b"},
    "a script for an endpoint": {"authorization_endpoint": "javascript:alert(1)"},
    "no keys": {"jwks_uri": None},
}


@pytest.mark.requirement("oauth.provider_attacks")
@pytest.mark.parametrize("attack", METADATA)
def test_metadata_that_cannot_be_used_send_nobody_anywhere(
    other_home: Callable[..., tuple[World, Provider]], attack: str
) -> None:
    world, provider = other_home()
    provider.metadata = METADATA[attack]
    answer = world.browser().client.get("/oauth/oidc")
    assert (answer.status_code, "location" in answer.headers) == (503, False)


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")
@pytest.mark.requirement("oauth.provider_attacks")
def test_a_short_key_a_key_to_encrypt_and_a_shared_one_sign_nothing(
    other_home: Callable[..., tuple[World, Provider]],
) -> None:
    short = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    secret = {"kty": "oct", "kid": "k1", "alg": "RS256", "k": base64.urlsafe_b64encode(b"x" * 32).decode()}
    curve = jwt.algorithms.ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()).public_key(), as_dict=True)
    for keys, key in (
        ([jwk(short, "k1")], short),
        ([jwk(KEY, "k1", use="enc")], KEY),
        ([secret], KEY),
        ([{**curve, "kid": "k1"}], KEY),
        ([{"kty": "RSA", "kid": "k1", "n": "", "e": "AQAB"}], KEY),
        ([jwk(KEY, "k1"), jwk(OTHER_KEY, "k1")], KEY),
        (["k1", None], KEY),
    ):
        world, provider = other_home()
        provider.keys = keys  # type: ignore[assignment]
        provider.sign = lambda claims, key=key: jwt.encode(claims, key, "RS256", {"kid": "k1"})  # type: ignore[misc]
        browser, answer = signs_in(world, provider)
        assert (answer.status_code, is_in(browser)) == (400, False), keys


@pytest.mark.requirement("oauth.provider_attacks")
def test_forged_kids_make_nobody_ask_for_keys_more_than_once_a_minute(
    other_home: Callable[..., tuple[World, Provider]],
) -> None:
    world, provider = other_home()
    provider.sign = lambda claims: signed(claims, OTHER_KEY, kid="forged")
    for _ in range(5):
        signs_in(world, provider)
    assert len([each for each in provider.asked if each.address.endswith("/keys")]) == 1


LOGOUTS: dict[str, Claims] = {
    "for another client": {"aud": "other"},
    "of another issuer": {"iss": "https://evil.example"},
    "an ID token": {"events": None},
    "with a nonce": {"nonce": "n"},
    "of nobody": {"sub": None},
    "without an id": {"jti": None},
    "of long ago": {"iat": 1_000_000_000},
    "of the future": {"iat": 9_999_999_999},
    "expired": {"exp": 1_000_000_000},
    "an event of another kind": {"events": {"https://evil.example": {}}},
    "of a subject that is a list": {"sub": ["248289761001"]},
}


@pytest.mark.requirement("oauth.provider_attacks")
@pytest.mark.parametrize("attack", LOGOUTS)
def test_a_forged_logout_token_signs_nobody_out(evil: tuple[World, Provider], attack: str) -> None:
    world, provider = evil
    browser, _answer = signs_in(world, provider)
    token = provider.logout_token(**{"jti": attack, **LOGOUTS[attack]})
    answer = world.http.post("/oauth/oidc/logout", data={"logout_token": token})
    assert (answer.status_code, answer.json()["error"], is_in(browser)) == (400, "invalid_request", True)


@pytest.mark.requirement("oauth.provider_attacks")
def test_a_logout_token_counts_once(evil: tuple[World, Provider]) -> None:
    world, provider = evil
    token = provider.logout_token(jti="once")
    assert world.http.post("/oauth/oidc/logout", data={"logout_token": token}).status_code == 200
    browser, _answer = signs_in(world, provider)
    assert world.http.post("/oauth/oidc/logout", data={"logout_token": token}).status_code == 400
    assert is_in(browser)


@pytest.mark.requirement("oauth.provider_attacks")
def test_a_sign_in_leads_back_to_addresses_of_ours_alone(evil: tuple[World, Provider]) -> None:
    world, provider = evil
    browser = world.browser()
    for place in ("https://evil.example", "//evil.example", "/\\evil.example"):
        answer = browser.client.get("/oauth/oidc", params={"request": place})
        assert (answer.status_code, "location" in answer.headers) == (400, False)
    browser, _answer = signs_in(world, provider)
    there = browser.client.get("/account/prove", params={"back": "https://evil.example"}).headers["location"]
    assert there.startswith(f"{ISSUER}/auth?")
    assert comes_back(browser, provider, there).headers["location"] == "/account"


@pytest.mark.requirement("oauth.provider_attacks")
def test_the_host_of_a_request_does_not_get_into_the_address_to_come_back_to(evil: tuple[World, Provider]) -> None:
    world, _provider = evil
    answer = world.browser().client.get("/oauth/oidc", headers={"X-Forwarded-Host": "evil.example"})
    assert parameters(answer.headers["location"])["redirect_uri"] == "http://127.0.0.1:8000/oauth/oidc/callback"


@pytest.mark.requirement("oauth.provider_attacks")
def test_linking_takes_a_form_of_ours_and_a_proof_of_the_other_person_proves_nothing(
    evil: tuple[World, Provider],
) -> None:
    world, provider = evil
    browser, _answer = signs_in(world, provider)
    forged = browser.client.post("/account/provider", data={"form_token": "x", "current_password": "y"})
    assert forged.status_code == 403
    there = browser.client.get("/account/prove?back=/account").headers["location"]
    provider.subject = "somebody else"
    assert comes_back(browser, provider, there).status_code == 400


@pytest.mark.requirement("oauth.provider_attacks")
def test_one_browser_has_twenty_sign_ins_under_way(other_home: Callable[..., tuple[World, Provider]]) -> None:
    world, provider = other_home()
    browser = world.browser()
    first = to_provider(browser)
    for _ in range(20):
        world.clock.forward(seconds=1)
        last = to_provider(browser)
    assert len(world.database.rows("SELECT secret_hash FROM oauth_errands")) == 20
    assert comes_back(browser, provider, first).status_code == 400
    assert comes_back(browser, provider, last).status_code == 303


@pytest.mark.requirement("oauth.provider_attacks")
def test_neither_state_nonce_nor_verifier_is_stored(evil: tuple[World, Provider]) -> None:
    world, _provider = evil
    asked = parameters(to_provider(world.browser()))
    stored = json.dumps(world.database.rows("SELECT * FROM oauth_errands"), default=str)
    assert asked["state"] not in stored
    assert asked["nonce"] not in stored


@pytest.mark.requirement("oauth.provider_attacks")
def test_a_session_from_before_the_sign_in_is_worth_nothing_after_it(evil: tuple[World, Provider]) -> None:
    world, provider = evil
    browser = world.browser()
    address = to_provider(browser)
    planted = dict(browser.client.cookies)
    comes_back(browser, provider, address)
    thief = world.browser()
    thief.client.cookies.update(planted)
    assert (is_in(browser), is_in(thief)) == (True, False)


@pytest.mark.requirement("oauth.provider_attacks")
def test_a_name_form_of_another_browser_makes_nobody(other_home: Callable[..., tuple[World, Provider]]) -> None:
    world, provider = other_home(takes_new_people=True)
    provider.subject, provider.claims = "new", {"preferred_username": "alice"}
    _browser, page = signs_in(world, provider)
    thief = world.browser()
    thief.client.get("/oauth/login")
    session = world.server.sessions.resume(thief.client.cookies["bds_session"])
    assert session is not None
    form = {**fields(page.text), "form_token": world.server.sessions.form_token(session, "provider name")}
    assert thief.client.post("/oauth/oidc/name", data={**form, "username": "mallory"}).status_code == 400
    assert not is_in(thief)
