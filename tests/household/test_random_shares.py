"""Histories of two people who share and share no more, told by banks and files: at every rest the receiver has what is
shared to the cent and nothing else, and an app of theirs what is theirs."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from analytics.records import AccountRecord, TransactionRecord
from storage import accounts
from storage.database import Transaction
from storage.importing import same_accounts
from storage.oauth.grants import EVERYTHING, Terms
from storage.oauth.shares import Share
from storage.undo_and_merge import rebuild
from tests.conftest import chance, seeds
from tests.household.conftest import Served, answers
from tests.imports.test_shares import GIRO, SPAR, booking

VISA = AccountRecord(stable_key="visa", currency="EUR", name="Canary card", iban="DE12500105170648489890")
OWN = AccountRecord(stable_key="own", currency="EUR", name="Own", iban="DE02120300000000202051")
OF_EVA = (GIRO, SPAR, VISA)
STEPS = ("tells", "tells", "tells", "file", "own", "joint", "note", "shares", "changes", "ends", "hides", "deletes")


@dataclass
class History:
    """What two people do one after the other; `joint` says whether a bank of Ben's tells Eva's first account, too."""

    home: Served
    dice: Random
    share: Share | None = None
    is_joint: bool = False
    number: int = 0
    taken: list[str] = field(default_factory=list)

    def step(self, name: str) -> None:
        """One step of those of STEPS that can be made now."""
        self.taken.append(name)
        getattr(self, f"_{name}")()

    def _booking(self, words: str = "canary") -> TransactionRecord:
        self.number += 1
        day, amount = self.dice.randrange(1, 20), f"-{self.number}.{self.dice.randrange(10, 100)}"
        who = self.dice.choice(("REWE", "Netflix", f"{words} {self.number % 5}"))
        return booking(
            f"2026-11-{day:02}", amount, f"{words} {self.number}", counterpart_name=who, provider_id=f"p{self.number}"
        )

    def _tells(self) -> None:
        self.home.bring(self.home.eva, self.dice.choice(OF_EVA), self._booking())

    def _file(self) -> None:
        self.home.bring(self.home.eva, GIRO, self._booking(), connector="files")

    def _own(self) -> None:
        self.home.bring(self.home.ben, OWN, self._booking("own"))

    def _joint(self) -> None:
        if self.dice.random() < 0.3:
            self.is_joint = True
            self.home.bring(self.home.ben, GIRO, self._booking("both"))

    def _note(self) -> None:
        found = self.home.bens_page.get("/transactions/search?perPage=20").json()["transactions"]
        if found:
            said = {"note": "canary note", "tags": ["canary"]} if "canary" in str(found[0]) else {"note": "own note"}
            self.home.bens_page.patch(f"/transactions/{found[0]['id']}/annotation", json=said)

    def _terms(self) -> Terms:
        owned = [each.id for each in accounts.every(self.home.services.of(self.home.eva.id), self.home.eva.id)]
        some = tuple(sorted(id_ for id_ in owned if self.dice.random() < 0.5))
        return self.dice.choice((EVERYTHING, Terms(accounts=some), Terms(accounts=some, all_but=True)))

    def _shares(self) -> None:
        if self.share is None:
            self.share = self.home.share(self._terms())

    def _changes(self) -> None:
        if self.share is not None:
            sharing = self.home.services.authorization.shares
            sharing.change(self.home.eva, self.share, terms=self._terms(), ends_at=None, pass_on=False, is_wider=False)

    def _ends(self) -> None:
        if self.share is not None:
            assert self.home.services.authorization.shares.end(
                self.dice.choice((self.home.eva, self.home.ben)), self.share.id
            )
            self.share = None

    def _hides(self) -> None:
        eva = self.home.eva

        def work(session: Transaction) -> None:
            for each in accounts.every(session, eva.id)[:1]:
                same_accounts.hide(
                    session, user_id=eva.id, account_id=each.id, is_hidden=not each.is_hidden, now=self._now()
                )

        self.home.services.alone(eva.id, work)

    def _deletes(self) -> None:
        eva = self.home.eva

        def work(session: Transaction) -> None:
            for each in accounts.every(session, eva.id)[-1:]:
                rebuild.delete(session, user=eva, account_id=each.id, now=self._now())

        self.home.services.alone(eva.id, work)

    def _now(self) -> Any:
        return self.home.services.clock.now()

    def shared(self) -> list[tuple[Any, ...]]:
        """The bookings of Eva's that Ben has to have now."""
        home = self.home
        given = home.services.authorization.shares.given_by(home.eva.id)
        if not given:
            return []
        (found,) = given
        every = accounts.of_user(home.services.of(home.eva.id), home.eva.id)
        named = set(found.accounts or ())
        covered = {each.iban for each in every if found.accounts is None or (each.id in named) != found.all_but}
        return [row for row in home.rows(home.eva) if row[0] in covered]

    def check(self) -> None:
        """At rest: Ben has what is shared and what is his, his app only that."""
        home = self.home
        home.settle()
        theirs = [row for row in home.rows(home.ben) if not row[3].startswith(("own", "both"))]
        assert theirs == self.shared(), self.taken
        seen = home.bens_app.get("/accounts").json()["accounts"]
        assert {each["iban"] for each in seen} <= {OWN.iban, *([GIRO.iban] if self.is_joint else [])}, self.taken
        if not self.is_joint:
            for path in ("/transactions/search?perPage=100", "/tags", "/connections", "/accounts/changes"):
                text = home.bens_app.get(path).text
                assert "canary" not in text.lower(), (path, self.taken)
                assert "eva" not in text, (path, self.taken)


@pytest.mark.no_cover
@pytest.mark.requirement("household.apps")
@pytest.mark.parametrize("seed", seeds(24))
def test_whatever_two_people_do_each_has_what_is_theirs(served: Served, seed: int) -> None:
    history = History(served, chance(f"shares {seed}"))
    served.bring(served.ben, OWN, history._booking("own"))
    own = served.account(served.ben, OWN.iban)
    cursor = served.bens_app.get("/transactions/changes").json()["nextCursor"]
    for _ in range(5):
        for _ in range(history.dice.randrange(1, 6)):
            history.step(history.dice.choice(STEPS))
        history.check()
    history.step("shares")
    history.check()
    if not history.is_joint:
        with_share = answers(served.bens_app)
        history.step("ends")
        history.check()
        assert served.services.everybody.rows("SELECT id FROM oauth_shares") == []
        assert answers(served.bens_app) == with_share
        news = served.bens_app.get("/transactions/changes", params={"cursor": cursor}).json()
        assert {each["bankAccount"]["id"] for each in (*news["added"], *news["modified"])} <= {own}
        assert news["removed"] == []
