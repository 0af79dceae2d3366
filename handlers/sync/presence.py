"""Whether a person sits at the other end, as far as a browser says so of them."""

from collections.abc import Mapping

from connectors.connector import Person


def person_at(headers: Mapping[str, str], address: str) -> Person | None:
    """What a bank is told of who sits at this browser; None where it does not say all of it."""
    agent, accept, language = (headers.get(name, "") for name in ("user-agent", "accept", "accept-language"))
    if not (agent and accept and language):
        return None
    return Person(address=address, user_agent=agent, accept=accept, accept_language=language)
