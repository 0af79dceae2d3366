"""Client registration: what is accepted, what is refused with which word, and how floods end."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

GOOD = {"client_name": "Budget", "redirect_uris": ["https://app.example/cb"]}


def register(world: Any, document: Any = None, **more: Any) -> Any:
    return world.http.post("/oauth/register", json={**GOOD, **more} if document is None else document)


@pytest.mark.requirement("oauth.registration")
def test_a_client_gets_an_id_no_secret_and_its_metadata_back(world: Any) -> None:
    more = {
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "client_uri": "https://app.example/",
        "logo_uri": "https://app.example/logo.png",
        "policy_uri": "https://app.example/policy",
        "tos_uri": "https://app.example/tos",
        "software_id": "4NRB1",
        "software_version": "2.1",
        "application_type": "native",
    }
    answer = register(world, **more, unknown={"a": 1}, client_id="mine", client_secret="mine", client_id_issued_at=1)
    assert answer.status_code == 201
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    body = answer.json()
    client_id = body.pop("client_id")
    assert len(client_id) >= 16
    assert client_id.startswith("app_")  # `bankdata clients remove` would take a dash for an option
    assert client_id != "mine"
    assert body.pop("client_id_issued_at") == 1795176000
    assert body == {**GOOD, **more, "scope": "read:accounts read:transactions read:cashflow"}


@pytest.mark.requirement("oauth.registration")
def test_what_is_left_out_is_filled_in(world: Any) -> None:
    body = register(world, {"redirect_uris": ["http://127.0.0.1/cb"]}).json()
    assert body["client_name"] == "Unnamed app"
    assert body["token_endpoint_auth_method"] == "none"
    assert body["grant_types"] == ["authorization_code", "refresh_token"]
    assert body["response_types"] == ["code"]


@pytest.mark.requirement("oauth.registration")
@pytest.mark.parametrize(
    "uri",
    [
        "https://app.example/cb",
        "https://app.example",
        "https://app.example:8443/cb?fixed=1",
        "https://xn--bcher-kva.example/cb",
        "http://127.0.0.1/cb",
        "http://127.0.0.1:8765/cb",
        "http://[::1]:9000/",
        "http://localhost:3000/callback",
        "com.example.app:/callback",
        "com.example.app://host/callback",
        "cursor://anysphere.cursor-mcp/oauth/callback",
        "vscode://vscode.github-authentication/did-authenticate",
    ],
)
def test_redirect_uris_that_apps_use_are_accepted_byte_for_byte(world: Any, uri: str) -> None:
    assert register(world, redirect_uris=[uri]).json()["redirect_uris"] == [uri]


@pytest.mark.requirement("oauth.registration")
@pytest.mark.parametrize(
    "uri",
    [
        "",
        " ",
        "/cb",
        "cb",
        "//app.example/cb",
        "https:",
        "https:/app.example/cb",
        "https:///cb",
        "https://",
        "https://app.example/cb#",
        "https://app.example/cb#frag",
        "http://app.example/cb",
        "http://127.0.0.1.evil.example/cb",
        "http://localhost.evil.example/cb",
        "http://127.1/cb",
        "http://2130706433/cb",
        "http://0x7f.0.0.1/cb",
        "http://127.0.0.2/cb",
        "http://[::]/cb",
        "http://user@127.0.0.1/cb",
        "https://user:pw@app.example/cb",
        "https://app.example@evil.example/cb",
        "https://*.example/cb",
        "https://app.example/*",
        "https://app.example\\@evil.example/cb",
        "https://app.example/a b",
        "https://app.example/\r\nSet-Cookie: a=b",
        "https://app.example/\x00",
        "https://app.example/\u202e",
        "https://bücher.example/cb",
        "https://app.example:0/cb",
        "https://app.example:65536/cb",
        "https://app.example:x/cb",
        "https://-app.example/cb",
        "https://[::gg]/cb",
        "https://[1:2]/cb",
        "https://app.example/%zz",
        "https://app.example/cb?code=1",
        "https://app.example/cb?state=1",
        "javascript:alert(1)",
        "JavaScript:alert(1)//",
        "data:text/html,hi",
        "vbscript:msgbox(1)",
        "file:///etc/passwd",
        "blob:https://app.example/1",
        "about:blank",
        "mailto:a@example.com",
        "ftp://app.example/cb",
        "urn:ietf:wg:oauth:2.0:oob",
        "myapp:/cb",
        "com.example.app:callback",
        "com.example.app:",
        "https://app.example/" + "a" * 2000,
    ],
)
def test_other_redirect_uris_are_refused_even_among_good_ones(world: Any, uri: str) -> None:
    for uris in ([uri], ["https://app.example/cb", uri]):
        answer = register(world, redirect_uris=uris)
        assert answer.status_code == 400, uri
        assert answer.json()["error"] == "invalid_redirect_uri"


@pytest.mark.requirement("oauth.registration")
@pytest.mark.parametrize("uris", [None, [], {}, "https://app.example/cb", [1], [None], [["https://app.example/cb"]], 7])
def test_redirect_uris_must_be_a_list_of_texts(world: Any, uris: Any) -> None:
    assert register(world, redirect_uris=uris).json()["error"] == "invalid_redirect_uri"


@pytest.mark.requirement("oauth.registration")
def test_twenty_redirect_uris_are_accepted_and_twenty_one_are_not(world: Any) -> None:
    uris = [f"https://app.example/{number}" for number in range(21)]
    assert register(world, redirect_uris=uris[:20]).status_code == 201
    assert register(world, redirect_uris=uris).json()["error"] == "invalid_redirect_uri"


@pytest.mark.requirement("oauth.registration")
@pytest.mark.parametrize(
    "more",
    [
        {"client_name": 7},
        {"client_name": ["a"]},
        {"client_name": "a" * 201},
        {"client_name": "a\x00b"},
        {"client_name": "a\nb"},
        {"client_name": "a\u202eb"},
        {"client_name": "a\u2066b"},
        {"client_name": "a\u2028b"},
        {"grant_types": ["implicit"]},
        {"grant_types": ["password"]},
        {"grant_types": ["client_credentials"]},
        {"grant_types": ["refresh_token"]},
        {"grant_types": "authorization_code"},
        {"grant_types": [1]},
        {"response_types": ["token"]},
        {"response_types": "code"},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"token_endpoint_auth_method": "nonsense"},
        {"token_endpoint_auth_method": 1},
        {"scope": 7},
        {"scope": ["read:accounts"]},
        {"client_uri": "javascript:alert(1)"},
        {"logo_uri": "data:image/png;base64,AAAA"},
        {"logo_uri": "https://"},
        {"tos_uri": 7},
        {"policy_uri": "https://a b"},
        {"policy_uri": "https://[::gg]/"},
        {"software_id": 7},
        {"software_version": "a" * 201},
        {"application_type": "browser"},
        {"application_type": ["web"]},
    ],
)
def test_other_metadata_is_refused(world: Any, more: dict[str, Any]) -> None:
    answer = register(world, **more)
    assert answer.status_code == 400
    assert answer.json()["error"] == "invalid_client_metadata"
    assert set(answer.json()) == {"error", "error_description"}


@pytest.mark.requirement("oauth.registration")
def test_unsupported_extras_beside_what_is_supported_are_replaced(world: Any) -> None:
    body = register(
        world,
        grant_types=["authorization_code", "urn:ietf:params:oauth:grant-type:device_code"],
        scope="openid offline_access",
    ).json()
    assert body["grant_types"] == ["authorization_code", "refresh_token"]
    assert body["scope"] == "read:accounts read:transactions read:cashflow"


@pytest.mark.requirement("oauth.registration")
@pytest.mark.parametrize("method", ["client_secret_post", "client_secret_basic", ""])
def test_who_asks_for_a_secret_is_told_that_none_is_needed(world: Any, method: str) -> None:
    answer = register(world, token_endpoint_auth_method=method)
    assert (answer.status_code, answer.json()["token_endpoint_auth_method"]) == (201, "none")
    assert "client_secret" not in answer.json()


@pytest.mark.requirement("oauth.registration")
def test_empty_members_are_as_good_as_none(world: Any) -> None:
    names = ("client_uri", "logo_uri", "policy_uri", "tos_uri", "software_id", "software_version", "application_type")
    answer = register(world, **dict.fromkeys(names, ""), scope="")
    assert answer.status_code == 201
    assert not answer.json().keys() & set(names)


@pytest.mark.requirement("oauth.registration")
@pytest.mark.parametrize("name", ["Müller & Söhne <b>", "家計簿", "👩‍👩‍👧 Budget", "a" * 200, 'O\'Reilly "quoted"'])
def test_names_of_all_scripts_come_back_as_they_are(world: Any, name: str) -> None:
    assert register(world, client_name=name).json()["client_name"] == name


@pytest.mark.requirement("oauth.bad_input")
@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (b"null", 400),
        (b"[]", 400),
        (b'"text"', 400),
        (b"7", 400),
        (b"{", 400),
        (b"{}", 400),
        (b"\xff\xfe", 400),
        (b'{"a": NaN}', 400),
        (b'{"client_name": "\\ud800", "redirect_uris": ["https://a.example/"]}', 400),
        (b"[" * 20_000, 400),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, 400),
        (b'{"a": ' + b"9" * 10_000 + b"}", 400),
        (b" " * 70_000, 413),
    ],
)
def test_bodies_that_are_no_metadata_are_refused_as_json(world: Any, content: bytes, status: int) -> None:
    answer = world.http.post("/oauth/register", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    assert set(answer.json()) == {"error", "error_description"}


@pytest.mark.requirement("oauth.bad_input")
@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/json",
        "application/xml",
    ],
)
def test_other_content_types_are_refused_so_that_no_web_site_registers_in_passing(world: Any, kind: str) -> None:
    content = b'{"redirect_uris": ["https://app.example/cb"]}'
    answer = world.http.post("/oauth/register", content=content, headers={"Content-Type": kind})
    assert answer.status_code == 415
    assert answer.json()["error"] == "invalid_request"


@pytest.mark.requirement("oauth.bad_input")
def test_a_body_without_a_type_is_refused_because_browsers_send_one_across_sites_unasked(world: Any) -> None:
    answer = world.http.post("/oauth/register", content=b'{"redirect_uris": ["https://app.example/cb"]}')
    assert answer.status_code == 415
    assert answer.json()["error"] == "invalid_request"


@pytest.mark.requirement("oauth.registration_limit")
def test_twenty_unused_clients_an_hour_and_address(fresh: Any) -> None:
    for _ in range(20):
        assert register(fresh).status_code == 201
        fresh.clock.forward(seconds=60)
    refused = register(fresh)
    assert refused.status_code == 429
    assert refused.json()["error"] == "temporarily_unavailable"
    assert refused.headers["retry-after"] == "2401"  # the first one is 20 minutes old
    fresh.clock.forward(seconds=2401)
    assert register(fresh).status_code == 201
    assert register(fresh).status_code == 429


@pytest.mark.requirement("oauth.registration_limit")
def test_clients_that_a_user_allowed_do_not_count(make_world: Callable[..., Any]) -> None:
    world = make_world(registration_limit=(2, timedelta(hours=1)))
    for _ in range(4):
        world.tokens()
    register(world)
    register(world)
    assert register(world).status_code == 429


@pytest.mark.requirement("oauth.registration")
def test_unused_clients_are_gone_after_a_day_and_used_ones_stay(fresh: Any) -> None:
    used, unused = fresh.tokens()["client_id"], fresh.register()
    fresh.clock.forward(hours=24, seconds=1)
    fresh.server.cleanup.sweep()
    assert fresh.server.clients.find(unused) is None
    assert fresh.server.clients.find(used) is not None


@pytest.mark.requirement("oauth.registration")
def test_a_client_stays_while_somebody_signs_in_for_it(fresh: Any) -> None:
    client_id = fresh.register()
    fresh.clock.forward(hours=23, minutes=59)
    browser = fresh.browser()
    page = browser.authorize(client_id)
    fresh.clock.forward(minutes=11)
    fresh.server.cleanup.sweep()
    assert browser.consent(browser.sign_in(page)).status_code == 303
    other = fresh.register()
    fresh.browser().authorize(other)
    fresh.clock.forward(hours=24, seconds=1)
    fresh.server.cleanup.sweep()
    assert fresh.server.clients.find(other) is None


@pytest.mark.requirement("oauth.registration_mode")
def test_registration_can_be_off(make_world: Callable[..., Any]) -> None:
    world = make_world(registration="off")
    assert register(world).status_code == 403
    assert "registration_endpoint" not in world.http.get("/.well-known/oauth-authorization-server").json()


@pytest.mark.requirement("oauth.registration_mode")
def test_registration_can_ask_for_a_token(make_world: Callable[..., Any]) -> None:
    world = make_world(registration="token")
    assert register(world).status_code == 401
    for bearer, status in (("wrong", 401), (world.server.clients.initial_token(), 201)):
        answer = world.http.post("/oauth/register", json=GOOD, headers={"Authorization": f"Bearer {bearer}"})
        assert answer.status_code == status
