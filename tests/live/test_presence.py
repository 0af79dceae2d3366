"""A bank is told of a person only where the browser says all of what it asks."""

import pytest

from connectors.connector import Person
from handlers.work.sync.presence import person_at

pytestmark = pytest.mark.requirement("live.attempts")

HEADERS = {"user-agent": "Firefox", "accept": "text/html", "accept-language": "de"}


def test_a_browser_that_says_all_is_a_person() -> None:
    assert person_at(HEADERS, "192.0.2.1") == Person(
        address="192.0.2.1", user_agent="Firefox", accept="text/html", accept_language="de"
    )


@pytest.mark.parametrize("missing", HEADERS)
def test_a_browser_that_leaves_something_out_is_nobody(missing: str) -> None:
    assert person_at({name: value for name, value in HEADERS.items() if name != missing}, "192.0.2.1") is None
