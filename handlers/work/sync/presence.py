"""Describes the person at a browser to a bank, as far as the browser's headers tell."""

from collections.abc import Mapping

from connectors.connector import Person


def person_at(headers: Mapping[str, str], address: str) -> Person | None:
    """What a bank is told about the person at this browser: network address, User-Agent, Accept and Accept-Language;
    None if the browser does not send all three headers."""
    agent, accept, language = (headers.get(name, "") for name in ("user-agent", "accept", "accept-language"))
    if not (agent and accept and language):
        return None
    return Person(address=address, user_agent=agent, accept=accept, accept_language=language)
