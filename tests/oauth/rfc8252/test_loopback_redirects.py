"""Native apps: any port on the loopback address they registered, and nothing else may differ."""

from typing import Any

import pytest


@pytest.mark.requirement("oauth.loopback")
@pytest.mark.parametrize(
    ("registered", "asked"),
    [
        ("http://127.0.0.1/cb", "http://127.0.0.1:51004/cb"),
        ("http://127.0.0.1:1234/cb", "http://127.0.0.1:51004/cb"),
        ("http://127.0.0.1:1234/cb", "http://127.0.0.1/cb"),
        ("http://[::1]:1/cb?a=b", "http://[::1]:65535/cb?a=b"),
        ("http://localhost:3000/cb", "http://localhost:3001/cb"),
        ("http://127.0.0.1", "http://127.0.0.1:51004"),
    ],
)
def test_the_port_may_differ(world: Any, registered: str, asked: str) -> None:
    answer = world.browser().authorize(world.register(registered), redirect_uri=asked)
    assert answer.status_code == 303


@pytest.mark.requirement("oauth.loopback")
@pytest.mark.parametrize(
    ("registered", "asked"),
    [
        ("http://127.0.0.1/cb", "http://127.0.0.1:51004/CB"),
        ("http://127.0.0.1/cb", "http://127.0.0.1:51004/cb/"),
        ("http://127.0.0.1/cb", "http://127.0.0.1:51004/cb?x"),
        ("http://127.0.0.1/cb", "http://localhost:51004/cb"),
        ("http://localhost/cb", "http://127.0.0.1:51004/cb"),
        ("http://127.0.0.1/cb", "http://[::1]:51004/cb"),
        ("http://127.0.0.1/cb", "https://127.0.0.1:51004/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1:0/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1:65536/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1:/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1:80@evil.example/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1:1234.evil.example/cb"),
        ("https://127.0.0.1/cb", "https://127.0.0.1:51004/cb"),
        ("https://app.example/cb", "https://app.example:8443/cb"),
    ],
)
def test_nothing_else_may_differ(world: Any, registered: str, asked: str) -> None:
    answer = world.browser().authorize(world.register(registered), redirect_uri=asked)
    assert answer.status_code == 400
    assert "location" not in answer.headers


@pytest.mark.requirement("oauth.loopback")
def test_the_token_request_must_name_the_port_that_was_used(world: Any) -> None:
    client_id = world.register("http://127.0.0.1/cb")
    used = "http://127.0.0.1:51004/cb"
    code, verifier = world.browser().code(client_id, redirect_uri=used)
    assert world.redeem(code, verifier, client_id, redirect_uri="http://127.0.0.1/cb").status_code == 400
    assert world.redeem(code, verifier, client_id, redirect_uri=used).status_code == 200
