"""Whether what was connected renews a connection or is another login at the same bank, as each source can tell."""

from pathlib import Path
from typing import Any

import pytest

from connectors.connecting import Done, LiveSource
from connectors.connector import Connection
from connectors.sources.demo.live import LiveDemoBank
from connectors.sources.enable_banking.connector import EnableBanking
from connectors.sources.finapi.connector import FinApi
from connectors.sources.fints.connector import FinTs
from connectors.sources.simplefin import SimpleFin

pytestmark = pytest.mark.requirement("live.attempts")

HERE = "http://127.0.0.1:1"
ENABLE_BANKING = EnableBanking(HERE, application="", key_file=Path("key.pem"))
FINTS = FinTs("product", lambda _: iter(()))
EVA = {"bank_code": "10000000"}, {"login": "eva"}


@pytest.mark.parametrize(
    ("source", "known", "done", "is_same"),
    [
        (SimpleFin(HERE), ({}, {}), ({}, {}), True),
        (LiveDemoBank(), ({}, {}), ({}, {}), True),
        (FinApi(HERE, HERE, "client", str), ({}, {}), ({}, {}), None),
        (ENABLE_BANKING, ({"accounts": {"a": {}, "b": {}}}, {}), ({"accounts": {"b": {}, "c": {}}}, {}), True),
        (ENABLE_BANKING, ({"accounts": {"a": {}}}, {}), ({"accounts": {"b": {}}}, {}), False),
        (ENABLE_BANKING, ({}, {}), ({"accounts": {"b": {}}}, {}), None),
        (ENABLE_BANKING, ({"accounts": {"a": {}}}, {}), ({"accounts": {}}, {}), None),
        (FINTS, EVA, EVA, True),
        (FINTS, EVA, ({"bank_code": "10000000"}, {"login": "tom"}), False),
        (FINTS, EVA, ({"bank_code": "20000000"}, {"login": "eva"}), False),
        (FINTS, ({"bank_code": "10000000"}, {}), EVA, None),
    ],
)
def test_each_source_tells_a_renewal_from_another_login_as_far_as_it_can(
    source: LiveSource, known: tuple[Any, Any], done: tuple[Any, Any], is_same: bool | None
) -> None:
    connection = Connection(id="c1", user_id="u1", bank_name="Bank", settings=known[0], secrets=known[1])
    assert source.is_same_login(connection, Done(bank_name="Bank", settings=done[0], secrets=done[1])) is is_same
