"""Two people in two browsers: one shares an account, the other accepts, sees and leaves it, and the first ends it."""

from typing import NamedTuple

import pytest
from playwright.sync_api import Page, expect

from tests.contract.demo_server import Demo
from tests.page.conftest import Opening


class Said(NamedTuple):
    """What the pages say in one language."""

    give: str
    section: str
    name: str
    password: str
    offer: str
    offered: str
    accept: str
    accepted: str
    leave_there: str
    leave: str
    ended: str
    end: str
    nobody: str


EN = Said(
    give="Share accounts",
    section="Share with somebody here",
    name="User name of that person",
    password="Current password",
    offer="Offer it",
    offered="Offered.",
    accept="Accept what solo offers",
    accepted="Accepted.",
    leave_there="Leave the share: solo",
    leave="Leave what solo shares or offers",
    ended="It has ended.",
    end="End what you share with globe",
    nobody="You share no account.",
)
DE = Said(
    give="Konten teilen",
    section="Mit jemandem hier teilen",
    name="Benutzername der Person",
    password="Aktuelles Passwort",
    offer="Anbieten",
    offered="Angeboten.",
    accept="Annehmen, was solo anbietet",
    accepted="Angenommen.",
    leave_there="Freigabe verlassen: solo",
    leave="Verlassen, was solo teilt oder anbietet",
    ended="Es ist beendet.",
    end="Beenden, was Sie mit globe teilen",
    nobody="Sie teilen kein Konto.",
)


SHARES = "/account/shares"


def told(page: Page, text: str) -> None:
    expect(page.get_by_role("status")).to_contain_text(text)


def given(page: Page, demo: Demo, said: Said) -> str:
    """Offer the first account to globe, and return its name."""
    page.goto(demo.origin + "/account")
    page.get_by_role("link", name=said.give, exact=True).click()
    expect(page.get_by_text(said.nobody)).to_be_visible()
    form = page.get_by_role("region", name=said.section)
    form.get_by_label(said.name).fill("globe")
    form.get_by_role("checkbox").first.check()
    form.get_by_label(said.password).fill("demo-solo-2024")
    name = form.locator("label", has=page.get_by_role("checkbox")).first.locator("strong").inner_text()
    form.get_by_role("button", name=said.offer).click()
    told(page, said.offered)
    return name


def accepted(page: Page, demo: Demo, said: Said) -> None:
    page.goto(demo.origin + SHARES)
    page.get_by_role("button", name=said.accept).click()
    told(page, said.accepted)


def shows(page: Page, demo: Demo, name: str, *, there: bool) -> None:
    """Wait until the list of accounts has this name, or has it no more."""
    found = page.locator("main").get_by_text(name, exact=True).first
    for _ in range(60):
        page.goto(demo.origin + "/")
        expect(page.locator("main .bones")).to_have_count(0)
        if found.is_visible() == there:
            return
        page.wait_for_timeout(500)
    raise AssertionError(f"{name} is {'not there' if there else 'still there'}")


@pytest.mark.sampled
@pytest.mark.requirement("household.walk")
@pytest.mark.parametrize(("locale", "said"), [("en-GB", EN), ("de-DE", DE)], ids=["en", "de"])
def test_an_account_is_shared_seen_left_and_ended_in_two_browsers(
    demo: Demo, signed_in: Opening, locale: str, said: Said
) -> None:
    giver, receiver = (signed_in(user=user, locale=locale) for user in ("solo", "globe"))
    name = f"{given(giver, demo, said)} (solo)"
    accepted(receiver, demo, said)
    shows(receiver, demo, name, there=True)
    receiver.goto(demo.origin + "/connections")
    card = receiver.get_by_role("region", name="solo", exact=True).first
    expect(card.get_by_role("link")).to_have_count(1)
    card.get_by_label(said.leave_there).click()
    receiver.get_by_role("button", name=said.leave).click()
    told(receiver, said.ended)
    shows(receiver, demo, name, there=False)
    given(giver, demo, said)
    accepted(receiver, demo, said)
    shows(receiver, demo, name, there=True)
    giver.reload()
    giver.get_by_role("button", name=said.end).click()
    told(giver, said.ended)
    expect(giver.get_by_text(said.nobody)).to_be_visible()
    shows(receiver, demo, name, there=False)
