"""From registration to data and back: the interface's section 5 in one sitting."""

from typing import Any

import pytest


@pytest.mark.requirement("oauth.flow")
def test_an_app_registers_and_a_user_lets_it_in_and_takes_it_back(world: Any) -> None:
    tokens = world.tokens()
    assert tokens["token_type"] == "Bearer"
    assert tokens["expires_in"] == 3600
    assert tokens["scope"] == "read:accounts read:transactions read:cashflow"
    assert world.api(tokens["access_token"]).json()["user"] == world.user.id

    again = world.refresh(tokens["refresh_token"], tokens["client_id"]).json()
    assert again["refresh_token"] != tokens["refresh_token"]
    assert world.api(again["access_token"]).status_code == 200

    form = {"token": again["refresh_token"], "client_id": tokens["client_id"]}
    assert world.http.post("/oauth/revoke", data=form).status_code == 200
    assert world.api(again["access_token"]).status_code == 401
    assert world.api(tokens["access_token"]).json() == {"error": "Unauthorized"}
