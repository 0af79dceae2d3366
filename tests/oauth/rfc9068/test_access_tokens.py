"""Which access tokens are believed: ours, for us, in time, and nothing that only looks like one."""

import base64
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from auth.errors import InvalidToken
from auth.tokens.access_tokens import AccessTokens, Claims
from auth.tokens.keys import KeyRing, numbers_fit, thumbprint
from storage.keys.places import KeysUnusable
from tests.oauth.conftest import file_of

NOW = datetime.fromisoformat("2026-11-20T12:00:00")
ISSUER = "http://127.0.0.1:8000"
AUDIENCE = ISSUER + "/api/v1"


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> KeyRing:
    return KeyRing(tmp_path_factory.mktemp("ring"), now=NOW)


@pytest.fixture(scope="module")
def tokens(ring: KeyRing) -> AccessTokens:
    return AccessTokens(ring, issuer=ISSUER, audience=AUDIENCE)


@pytest.fixture(scope="module")
def token(tokens: AccessTokens) -> str:
    return tokens.issue(user_id="u1", client_id="c1", scopes={"read:cashflow", "read:accounts"}, grant_id="g1", now=NOW)


@pytest.fixture(scope="module")
def forge(ring: KeyRing, token: str) -> Callable[..., str]:
    """The good token with other claims and headers, signed with the real key unless told otherwise."""

    def make(headers: dict[str, Any] | None = None, key: Any = None, algorithm: str = "RS256", **claims: Any) -> str:
        payload = {**json.loads(segment(token, 1)), **claims}
        payload = {name: value for name, value in payload.items() if value is not ...}
        header = {"typ": "at+jwt", "kid": ring.signing_key().kid, **(headers or {})}
        return jwt.encode(payload, key or ring.signing_key().private, algorithm=algorithm, headers=header)

    return make


def segment(token: str, index: int) -> bytes:
    part = token.split(".")[index]
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def packed(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@pytest.mark.requirement("oauth.token_shape")
def test_a_token_has_the_shape_of_rfc_9068_and_nothing_personal(token: str, ring: KeyRing) -> None:
    assert json.loads(segment(token, 0)) == {"alg": "RS256", "typ": "at+jwt", "kid": ring.signing_key().kid}
    claims = json.loads(segment(token, 1))
    assert claims.pop("jti")
    assert claims == {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "u1",
        "client_id": "c1",
        "scope": "read:accounts read:cashflow",
        "iat": 1795176000,
        "exp": 1795179600,
        "grant_id": "g1",
    }


@pytest.mark.requirement("oauth.token_lifetime")
def test_a_token_is_good_for_one_hour_and_not_a_second_longer(tokens: AccessTokens, token: str) -> None:
    claims: Claims = tokens.verify(token, NOW + timedelta(minutes=59, seconds=59))
    assert claims.user_id == "u1"
    assert claims.scopes == {"read:accounts", "read:cashflow"}
    with pytest.raises(InvalidToken):
        tokens.verify(token, NOW + timedelta(hours=1))


@pytest.mark.requirement("oauth.token_attacks")
@pytest.mark.parametrize("alg", ["none", "None", "NONE", "nOnE", "", "HS256", "RS512", "PS256", "ES256", None, 7])
@pytest.mark.parametrize("signature", ["", "AA", "real"])
def test_no_other_algorithm_is_believed(
    tokens: AccessTokens, token: str, ring: KeyRing, alg: Any, signature: str
) -> None:
    _header, payload, real = token.split(".")
    forged = packed({"alg": alg, "typ": "at+jwt", "kid": ring.signing_key().kid})
    with pytest.raises(InvalidToken):
        tokens.verify(f"{forged}.{payload}.{real if signature == 'real' else signature}", NOW)


@pytest.mark.requirement("oauth.token_attacks")
def test_the_public_key_is_no_shared_secret(tokens: AccessTokens, token: str, ring: KeyRing) -> None:
    import hashlib
    import hmac

    pem = (
        ring.signing_key()
        .private.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    signed = f"{packed({'alg': 'HS256', 'typ': 'at+jwt', 'kid': ring.signing_key().kid})}.{token.split('.')[1]}"
    mac = base64.urlsafe_b64encode(hmac.new(pem, signed.encode(), hashlib.sha256).digest()).rstrip(b"=").decode()
    with pytest.raises(InvalidToken):
        tokens.verify(f"{signed}.{mac}", NOW)


@pytest.mark.requirement("oauth.token_attacks")
@pytest.mark.parametrize(
    "extra",
    [
        {"jwk": {"kty": "RSA", "n": "AQAB", "e": "AQAB"}},
        {"jku": "http://127.0.0.1:1/keys"},
        {"x5u": "http://127.0.0.1:1/cert"},
        {"x5c": ["MIIB"]},
        {"crit": ["exp"]},
        {"b64": False},
        {"zip": "DEF"},
        {"cty": "JWT"},
    ],
)
def test_a_token_cannot_bring_its_own_key_or_rules(
    tokens: AccessTokens, forge: Callable[..., str], extra: dict[str, Any]
) -> None:
    with pytest.raises(InvalidToken):
        tokens.verify(forge(extra), NOW)


@pytest.mark.requirement("oauth.token_attacks")
@pytest.mark.parametrize(
    "kid", ["", "../../dev/null", "' OR 1=1 --", "\0", "a" * 500, 0, None, [], {"a": 1}, "file:///etc/passwd"]
)
def test_a_hostile_kid_finds_no_key(tokens: AccessTokens, token: str, kid: Any) -> None:
    _header, payload, signature = token.split(".")
    header = packed({"alg": "RS256", "typ": "at+jwt", "kid": kid})
    with pytest.raises(InvalidToken):
        tokens.verify(f"{header}.{payload}.{signature}", NOW)


@pytest.mark.requirement("oauth.token_attacks")
def test_a_stranger_s_key_signs_nothing_even_under_our_kid(
    tokens: AccessTokens, forge: Callable[..., str], ring: KeyRing
) -> None:
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    with pytest.raises(InvalidToken):
        tokens.verify(forge(key=stranger), NOW)
    elliptic = ec.generate_private_key(ec.SECP256R1())
    with pytest.raises(InvalidToken):
        tokens.verify(forge(key=elliptic, algorithm="ES256"), NOW)


@pytest.mark.requirement("oauth.token_attacks")
@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://evil.example"},
        {"iss": ISSUER + "/"},
        {"iss": ...},
        {"aud": ISSUER},
        {"aud": [AUDIENCE, "https://other.example"]},
        {"aud": ...},
        {"exp": ...},
        {"exp": "1795179600"},
        {"exp": True},
        {"exp": 1e300},
        {"exp": -1},
        {"exp": None},
        {"iat": 1795176600},
        {"nbf": 1795176600},
        {"nbf": "soon"},
        {"sub": ...},
        {"sub": ""},
        {"sub": 7},
        {"scope": "read:everything"},
        {"scope": ""},
        {"scope": ["read:accounts"]},
        {"client_id": ...},
        {"jti": ...},
        {"grant_id": ...},
    ],
)
def test_signed_but_wrong_is_wrong(tokens: AccessTokens, forge: Callable[..., str], claims: dict[str, Any]) -> None:
    with pytest.raises(InvalidToken):
        tokens.verify(forge(**claims), NOW)


@pytest.mark.requirement("oauth.token_attacks")
@pytest.mark.parametrize("kind", ["JWT", "jwt", "at+JWT ", "", "logout+jwt", "id+jwt"])
def test_only_access_tokens_are_access_tokens(tokens: AccessTokens, forge: Callable[..., str], kind: str) -> None:
    with pytest.raises(InvalidToken):
        tokens.verify(forge({"typ": kind}), NOW)


@pytest.mark.requirement("oauth.token_attacks")
def test_every_changed_character_breaks_a_token(tokens: AccessTokens, token: str) -> None:
    for position in range(len(token)):
        for letter in ("A", "B", "_", "=", " ", "\n", "."):
            changed = token[:position] + letter + token[position + 1 :]
            if changed != token:
                with pytest.raises(InvalidToken):
                    tokens.verify(changed, NOW)


@pytest.mark.requirement("oauth.token_attacks")
@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "...",
        "a.b",
        "a.b.c",
        "a.b.c.d",
        "é.é.é",
        "\0",
        "A" * 5000,
        "e30.e30.e30",
        "W10.W10.W10",
        "MQ.MQ.MQ",
    ],
)
def test_what_is_no_token_is_refused(tokens: AccessTokens, text: str) -> None:
    with pytest.raises(InvalidToken):
        tokens.verify(text, NOW)


@pytest.mark.requirement("oauth.token_attacks")
def test_deep_json_is_refused(tokens: AccessTokens, token: str) -> None:
    deep = base64.urlsafe_b64encode(b"[" * 1500).rstrip(b"=").decode()
    with pytest.raises(InvalidToken):
        tokens.verify(f"{deep}.{deep}.AA", NOW)


@pytest.mark.requirement("oauth.keys")
def test_rotation_keeps_the_old_key_for_one_lifetime(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path, now=NOW)
    old = ring.signing_key().kid
    tokens = AccessTokens(ring, issuer=ISSUER, audience=AUDIENCE)
    token = tokens.issue(user_id="u", client_id="c", scopes=["read:accounts"], grant_id="g", now=NOW)
    new = ring.rotate(now=NOW)
    assert [key["kid"] for key in ring.jwks(now=NOW)["keys"]] == [new, old]
    assert tokens.verify(token, NOW + timedelta(minutes=59)).key_id == old
    later = NOW + timedelta(hours=1, seconds=5)
    assert [key["kid"] for key in ring.jwks(now=later - timedelta(seconds=1))["keys"]] == [new, old]
    assert [key["kid"] for key in ring.jwks(now=later)["keys"]] == [new]
    assert ring.public_key(old, now=later) is None


@pytest.mark.requirement("oauth.keys")
def test_another_process_sees_the_rotation(tmp_path: Path) -> None:
    one, other = KeyRing(tmp_path, now=NOW), KeyRing(tmp_path, now=NOW)
    assert one.signing_key().kid == other.signing_key().kid
    assert one.secret("a") == other.secret("a") != one.secret("b")
    kid = one.rotate(now=NOW)
    assert other.signing_key().kid == kid
    assert other.public_key(kid, now=NOW) is not None


@pytest.mark.requirement("oauth.keys")
def test_the_key_file_is_private_and_its_jwk_shows_public_members_only(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "keys", now=NOW)
    assert file_of(ring).stat().st_mode & 0o777 == 0o600
    assert file_of(ring).parent.stat().st_mode & 0o777 == 0o700
    (jwk,) = ring.jwks(now=NOW)["keys"]
    assert jwk.keys() == {"kty", "n", "e", "alg", "use", "kid"}


@pytest.mark.requirement("oauth.keys")
@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"secret": "AAAA", "keys": []}', "\x00", "\xe9"])
def test_a_damaged_key_file_stops_the_start_with_one_sentence(tmp_path: Path, content: str) -> None:
    path = tmp_path / "oauth-keys.json"
    path.write_text(content, "latin-1")
    path.chmod(0o600)
    with pytest.raises(KeysUnusable, match="damaged"):
        KeyRing(tmp_path, now=NOW)


@pytest.mark.requirement("oauth.keys")
def test_a_key_file_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path, now=NOW)
    file_of(ring).chmod(0o644)
    with pytest.raises(KeysUnusable, match="chmod 600 it, or delete it"):  # a rotation leaves the secret in use
        KeyRing(tmp_path, now=NOW)


@pytest.mark.requirement("oauth.keys")
def test_the_key_id_is_the_thumbprint_of_rfc_7638() -> None:
    # The example of its section 3.1
    modulus = (
        "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3ok"
        "njhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu"
        "6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8a"
        "wapJzKnqDKgw"
    )
    jwk = {"kty": "RSA", "n": modulus, "e": "AQAB", "alg": "RS256", "kid": "2011-04-29"}
    assert thumbprint(jwk) == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"


@pytest.mark.requirement("oauth.keys")
def test_weak_and_foreign_kinds_of_keys_are_not_used(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path, now=NOW)
    document = json.loads(file_of(ring).read_text())
    for key in (
        rsa.generate_private_key(public_exponent=65537, key_size=1024),
        ec.generate_private_key(ec.SECP256R1()),
    ):
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        document["keys"][0]["pem"] = pem.decode()
        file_of(ring).write_text(json.dumps(document))
        with pytest.raises(KeysUnusable, match="damaged"):
            KeyRing(tmp_path, now=NOW)


@pytest.mark.requirement("oauth.keys")
@pytest.mark.parametrize("damaged", [{}, {"p": 1}, {"n": 3}, {"d": 5}, {"e": 3}, {"dmp1": 2}, {"dmq1": 2}, {"iqmp": 2}])
def test_a_key_is_one_whose_numbers_fit_each_other(damaged: dict[str, int]) -> None:
    class Of(dict[str, Any]):
        __getattr__ = dict.__getitem__

    whole = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_numbers()
    numbers = {name: getattr(whole, name) for name in ("p", "q", "d", "dmp1", "dmq1", "iqmp")}
    public = Of({"n": whole.public_numbers.n, "e": 65537} | damaged)
    assert numbers_fit(Of(numbers | damaged, public_numbers=public)) is (not damaged)  # type: ignore[arg-type]  # as that


@pytest.mark.requirement("oauth.keys")
@pytest.mark.parametrize(("line", "place"), [(8, 20), (1, 15)])  # one of its numbers; what kind of key it is
def test_a_damaged_key_is_not_used(tmp_path: Path, line: int, place: int) -> None:
    ring = KeyRing(tmp_path / "keys", now=NOW)
    document = json.loads(file_of(ring).read_text())
    lines = document["keys"][0]["pem"].splitlines()
    letter = "A" if lines[line][place] != "A" else "B"
    lines[line] = lines[line][:place] + letter + lines[line][place + 1 :]
    document["keys"][0]["pem"] = "\n".join(lines)
    file_of(ring).write_text(json.dumps(document))
    with pytest.raises(KeysUnusable, match="damaged"):
        KeyRing(tmp_path / "keys", now=NOW)


@pytest.mark.requirement("oauth.keys")
def test_of_two_first_starts_at_once_one_makes_the_keys(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        rings = list(pool.map(lambda _: KeyRing(tmp_path, now=NOW), range(4)))
    assert len({ring.signing_key().kid for ring in rings}) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["oauth-keys.json"]
