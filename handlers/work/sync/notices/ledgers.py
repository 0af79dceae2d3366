"""Whether ledgers add up, looked at soon after an import and beside it, because it takes longest."""

from collections.abc import Collection, Iterator, Mapping
from datetime import date, timedelta

from analytics.integrity import LedgerProblem, integrity
from analytics.minor_digits import in_digits
from analytics.notices.found import Finding
from storage import accounts, connections
from storage import integrity as evidence
from storage.accounts import StoredAccount
from storage.database import Session, Transaction
from storage.notices import looks, stored
from storage.notices.stored import LIVE

LEDGER = "ledger.wrong"
NEW, OLD, STAYS = "new", "old", "stays"
"""The stages: of an account that was sound, with the day; of one that was not or is seen first; and there on another
day still."""


def look_at_ledgers(session: Transaction, user_id: str, *, today: date) -> None:
    """Tell what is missing or differs in the user's ledgers. It waits on the page, and interrupts where the account was
    sound before and it is there on another day still."""
    session.hold(user_id)
    shares = connections.of_shares(session, user_id)  # whose own person hears of them
    mine = [each for each in accounts.of_user(session, user_id) if each.connection_id not in shares]
    owned = {each.id: each for each in mine}
    last = looks.last_look(session, user_id)
    found = list(_found(session, user_id, owned, today, last.checked))
    stored.reconcile(session, user_id, [LEDGER], found, today=today, is_known=lambda _: last.is_past)
    is_open = any(each.stage.startswith(NEW) for each in found)
    looks.keep_ledgers(session, user_id, owned, look_on=today + timedelta(days=1) if is_open else None)


def _found(
    session: Session, user_id: str, owned: Mapping[str, StoredAccount], today: date, checked: Collection[str]
) -> Iterator[Finding]:
    every = stored.of_kinds(session, user_id, [LEDGER])
    known = {(line, each.day): each for each in every for line in each.subject.splitlines()}
    unsound = {id_ for each in every if each.state in LIVE for id_ in each.content["accountIds"]}
    sound = set(checked) - unsound
    for account in integrity(owned, evidence.evidence(session, user_id, list(owned)), today=today):
        for problem in account.problems:
            if not problem.is_unsound:
                continue
            subject = f"{account.account_id}|{problem.kind}"
            before = known.get((subject, problem.first))
            stage = before.stage if before is not None else f"{NEW} {today}" if account.account_id in sound else OLD
            if stage.startswith(NEW) and stage < f"{NEW} {today}":
                stage = STAYS
            yield _wrong(problem, subject, account.account_id, owned[account.account_id].currency, stage)


def _wrong(problem: LedgerProblem, subject: str, account_id: str, currency: str, stage: str) -> Finding:
    amount = in_digits(problem.amount, currency) if problem.amount is not None else None
    said = {"first": problem.first.isoformat(), "last": problem.last.isoformat()}
    return Finding(
        kind=LEDGER,
        subject=subject,
        day=problem.first,
        stage=stage,
        interrupts=stage == STAYS,
        message=f"{LEDGER}.{problem.kind if amount is not None else 'missing'}",
        arguments=said if amount is None else {**said, "amount": f"{amount} {currency}"},
        account_ids=[account_id],
        amount=amount,
        currency=currency,
    )
