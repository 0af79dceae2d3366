"""The token endpoint: codes are redeemed once, by whom they were issued to, and errors are the RFC's."""

from typing import Any

import pytest

CODE = {"grant_type": "authorization_code", "client_id": "GOOD"}
REFRESH = {"grant_type": "refresh_token", "client_id": "GOOD"}


def form(world: Any, **fields: str) -> Any:
    return world.http.post("/oauth/token", data=fields)


@pytest.mark.requirement("oauth.token_response")
def test_the_answer_has_exactly_five_members_and_is_never_stored(world: Any) -> None:
    client_id = world.register()
    code, verifier = world.browser().code(client_id, scope="read:cashflow read:accounts")
    answer = world.redeem(code, verifier, client_id)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["pragma"] == "no-cache"
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert body.keys() == {"access_token", "token_type", "expires_in", "refresh_token", "scope"}
    assert (body["token_type"], body["expires_in"]) == ("Bearer", 3600)
    assert body["scope"] == "read:accounts read:cashflow"


@pytest.mark.requirement("oauth.code_once")
def test_a_code_is_good_once_and_its_replay_ends_the_grant(world: Any) -> None:
    client_id = world.register()
    code, verifier = world.browser().code(client_id)
    tokens = world.redeem(code, verifier, client_id).json()
    other = world.tokens(client_id)
    replay = world.redeem(code, verifier, client_id)
    assert (replay.status_code, replay.json()["error"]) == (400, "invalid_grant")
    assert world.api(tokens["access_token"]).status_code == 401
    assert world.refresh(tokens["refresh_token"], client_id).json()["error"] == "invalid_grant"
    assert world.api(other["access_token"]).status_code == 200


@pytest.mark.requirement("oauth.code_once")
def test_a_replay_that_is_invalid_otherwise_ends_nothing(world: Any) -> None:
    client_id, thief = world.register(), world.register()
    code, verifier = world.browser().code(client_id)
    tokens = world.redeem(code, verifier, client_id).json()
    assert world.redeem(code, "x" * 43, client_id).status_code == 400
    assert world.redeem(code, verifier, thief).status_code == 400
    assert world.redeem(code, verifier, client_id, redirect_uri="https://evil.example/").status_code == 400
    assert world.api(tokens["access_token"]).status_code == 200


@pytest.mark.requirement("oauth.code_lifetime")
def test_a_code_lives_for_sixty_seconds(fresh: Any) -> None:
    client_id = fresh.register()
    code, verifier = fresh.browser().code(client_id)
    late, late_verifier = fresh.browser().code(client_id)
    fresh.clock.forward(seconds=59.9)
    assert fresh.redeem(code, verifier, client_id).status_code == 200
    fresh.clock.forward(seconds=0.1)
    assert fresh.redeem(late, late_verifier, client_id).json()["error"] == "invalid_grant"


@pytest.mark.requirement("oauth.code_bound")
def test_mistakes_do_not_burn_a_code(world: Any) -> None:
    client_id, thief = world.register(), world.register()
    code, verifier = world.browser().code(client_id)
    for answer in (
        world.redeem(code, "w" * 43, client_id),
        world.redeem(code, verifier, thief),
        world.redeem(code, verifier, client_id, redirect_uri="https://app.example/other"),
    ):
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert world.redeem(code, verifier, client_id).status_code == 200


@pytest.mark.requirement("oauth.code_bound")
def test_the_redirect_uri_may_be_left_out_but_not_differ(world: Any) -> None:
    client_id = world.register()
    code, verifier = world.browser().code(client_id)
    fields = {"grant_type": "authorization_code", "code": code, "client_id": client_id, "code_verifier": verifier}
    assert form(world, **fields, redirect_uri="https://app.example/callback/").status_code == 400
    assert form(world, **fields).status_code == 200


@pytest.mark.requirement("oauth.pkce")
@pytest.mark.parametrize(
    ("verifier", "error"),
    [
        ("", "invalid_request"),
        ("challenge", "invalid_grant"),
        ("v" * 42, "invalid_grant"),
        ("v" * 129, "invalid_grant"),
        ("v" * 42 + "+", "invalid_grant"),
        ("ü" * 43, "invalid_grant"),
        ("v" * 43 + "\0", "invalid_grant"),
    ],
)
def test_only_the_verifier_behind_the_challenge_opens(world: Any, verifier: str, error: str) -> None:
    client_id = world.register()
    code, _right = world.browser().code(client_id)
    answer = world.redeem(code, verifier, client_id)
    assert (answer.status_code, answer.json()["error"]) == (400, error)


@pytest.mark.requirement("oauth.token_errors")
@pytest.mark.parametrize(
    ("fields", "status", "error"),
    [
        ({}, 400, "invalid_request"),
        ({"grant_type": ""}, 400, "invalid_request"),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"grant_type": "client_credentials"}, 400, "unsupported_grant_type"),
        ({"grant_type": "AUTHORIZATION_CODE"}, 400, "unsupported_grant_type"),
        ({"grant_type": "authorization_code"}, 400, "invalid_request"),
        ({"grant_type": "authorization_code", "client_id": "nobody", "code": "x"}, 401, "invalid_client"),
        (CODE, 400, "invalid_request"),
        (CODE | {"code": "x", "code_verifier": "v" * 43}, 400, "invalid_grant"),
        (REFRESH, 400, "invalid_request"),
        (REFRESH | {"refresh_token": "x"}, 400, "invalid_grant"),
        (REFRESH | {"refresh_token": "\0"}, 400, "invalid_grant"),
        (REFRESH | {"refresh_token": "x" * 50_000}, 400, "invalid_grant"),
        (REFRESH | {"client_secret": "s", "refresh_token": "x"}, 401, "invalid_client"),
        (REFRESH | {"resource": "https://x/", "refresh_token": "x"}, 400, "invalid_target"),
        ({"grant_type": "a" * 70_000}, 413, "invalid_request"),
    ],
)
def test_errors_are_the_rfc_s(world: Any, fields: dict[str, str], status: int, error: str) -> None:
    if fields.get("client_id") == "GOOD":
        fields = {**fields, "client_id": world.register()}
    answer = form(world, **fields)
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json().keys() == {"error", "error_description"}


@pytest.mark.requirement("oauth.token_errors")
def test_a_client_that_tries_basic_is_told_so(world: Any) -> None:
    client_id = world.register()
    fields = {"grant_type": "refresh_token", "refresh_token": "x", "client_id": client_id}
    answer = world.http.post("/oauth/token", data=fields, auth=(client_id, "secret"))
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    assert answer.headers["www-authenticate"].startswith("Basic")


@pytest.mark.requirement("oauth.token_errors")
def test_parameters_in_the_address_or_sent_twice_are_refused(world: Any) -> None:
    client_id = world.register()
    code, verifier = world.browser().code(client_id)
    fields = f"grant_type=authorization_code&code={code}&client_id={client_id}&code_verifier={verifier}"
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    for path, content in (
        (f"/oauth/token?{fields}", ""),
        ("/oauth/token?x=1", fields),
        ("/oauth/token", fields + "&code=x"),
        ("/oauth/token", fields + "&unknown=1&unknown=2"),
    ):
        answer = world.http.post(path, content=content, headers=headers)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), path
    assert world.http.post("/oauth/token", content=fields, headers=headers).status_code == 200


@pytest.mark.requirement("oauth.token_errors")
@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data; boundary=x", "text/plain"])
def test_only_forms_are_read(world: Any, kind: str) -> None:
    answer = world.http.post("/oauth/token", content=b'{"grant_type": "x"}', headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["error"]) == (415, "invalid_request")


@pytest.mark.requirement("oauth.bad_input")
@pytest.mark.parametrize(
    "content", [b"\xff", b"a=%ff", b"a=%", b"%zz", b"&" * 100, b"=", b"grant_type", b"\0", b"a=b&" * 5000]
)
def test_odd_bytes_get_an_rfc_error(world: Any, content: bytes) -> None:
    for path in ("/oauth/token", "/oauth/revoke"):
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = world.http.post(path, content=content, headers=headers)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


@pytest.mark.requirement("oauth.token_errors")
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "HEAD"])
def test_other_methods_are_405_with_allow(world: Any, method: str) -> None:
    answer = world.http.request(method, "/oauth/token")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"


@pytest.mark.requirement("oauth.token_errors")
def test_a_grant_of_a_removed_user_ends(fresh: Any) -> None:
    from storage import users

    tokens = fresh.tokens()
    client_id = fresh.register()
    code, verifier = fresh.browser().code(client_id)
    fresh.database.atomically(lambda session: users.remove(session, fresh.user.id))
    fresh.server.remove_user(fresh.user.id)
    assert fresh.redeem(code, verifier, client_id).json()["error"] == "invalid_grant"
    assert fresh.refresh(tokens["refresh_token"], tokens["client_id"]).json()["error"] == "invalid_grant"
    assert fresh.api(tokens["access_token"]).status_code == 401


@pytest.mark.requirement("oauth.token_errors")
def test_one_kind_of_secret_does_not_pass_for_another_and_loses_nothing_by_the_attempt(world: Any) -> None:
    tokens = world.tokens()
    client_id = tokens["client_id"]
    code, verifier = world.browser().code(client_id)
    for answer in (
        world.refresh(code, client_id),
        world.refresh(tokens["access_token"], client_id),
        world.redeem(tokens["refresh_token"], verifier, client_id),
        world.redeem(tokens["access_token"], verifier, client_id),
    ):
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert world.redeem(code, verifier, client_id).status_code == 200
    assert world.refresh(tokens["refresh_token"], client_id).status_code == 200


@pytest.mark.requirement("oauth.code_bound")
def test_the_scope_is_what_the_person_allowed_whatever_the_redemption_asks_for(world: Any) -> None:
    client_id = world.register()
    code, verifier = world.browser().code(client_id, scope="read:accounts")
    answer = world.redeem(code, verifier, client_id, scope="read:accounts read:transactions")
    assert (answer.status_code, answer.json()["scope"]) == (200, "read:accounts")


@pytest.mark.requirement("oauth.token_errors")
def test_unknown_parameters_and_empty_ones_are_as_if_they_had_not_been_sent(world: Any) -> None:
    tokens = world.tokens()
    more = {"unknown": "x", "scope": "", "client_secret": "", "resource": ""}
    answer = world.refresh(tokens["refresh_token"], tokens["client_id"], **more)
    assert (answer.status_code, answer.json()["scope"]) == (200, tokens["scope"])


@pytest.mark.requirement("oauth.token_errors")
def test_an_assertion_is_refused_like_a_secret_and_burns_nothing(world: Any) -> None:
    tokens = world.tokens()
    kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    sent = {"client_assertion": "a.b.c", "client_assertion_type": kind}
    answer = world.refresh(tokens["refresh_token"], tokens["client_id"], **sent)
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    assert world.refresh(tokens["refresh_token"], tokens["client_id"]).status_code == 200


@pytest.mark.requirement("oauth.token_errors")
def test_nothing_of_a_removed_client_counts_any_more(fresh: Any) -> None:
    tokens = fresh.tokens()
    client_id = tokens["client_id"]
    code, verifier = fresh.browser().code(client_id)
    assert fresh.api(tokens["access_token"]).status_code == 200
    fresh.server.clients.remove(client_id)
    for answer in (fresh.redeem(code, verifier, client_id), fresh.refresh(tokens["refresh_token"], client_id)):
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    assert fresh.api(tokens["access_token"]).status_code == 401
