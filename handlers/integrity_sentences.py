"""Sentences that tell users what is wrong with the ledgers of their accounts."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta

from analytics.integrity import AccountIntegrity, Kind, LedgerProblem, integrity
from analytics.messages import Amount, Message
from storage import accounts as stored_accounts
from storage import integrity as stored
from storage import transactions as stored_transactions
from storage.accounts import StoredAccount
from storage.database import Session

MISSING = "Transactions from {first} to {last} are missing. Import a statement of these days."
SAID_FOR = timedelta(days=7)  # how long a warning says that a bank has taken a booking back
TAKEN_BACK = "The bank has taken back the transaction of {amount} on {first}. No figure counts it any more."
PERHAPS_SAME = "Is this the same account as {other}? Its transactions are there too. It counts once you have said so."
SENTENCES: Mapping[Kind, str] = {
    "gap": "Transactions from {first} to {last} are missing, {amount} in all. Import a statement of these days.",
    "statement_differs": "The statement from {first} to {last} differs from its transactions by {amount}.",
    "balance_differs": "The balances from {first} to {last} differ from the transactions by {amount}.",
    "adjusting_entry": "An adjusting entry of {amount} on {first} stands for transactions that are missing.",
    "possible_duplicate": "A transaction of {amount} on {first} may be there twice.",
    "old_pending": "A payment of {amount} has been pending since {first}.",
}


def of_accounts(
    session: Session, user_id: str, accounts: Sequence[StoredAccount], *, today: date
) -> list[AccountIntegrity]:
    """The findings for each account, in the order given: whether its bookings, balances and statements add up."""
    ids = [account.id for account in accounts]
    return integrity(ids, stored.evidence(session, user_id, ids), today=today)


def warnings_of(session: Session, user_id: str, account_ids: Iterable[str], *, today: date) -> list[Message]:
    """All questions and warnings about these accounts, hidden ones included, as sentences, account by account: whether
    it is the same as another one, bookings taken back in the last week, and what does not add up."""
    wanted, owned = set(account_ids), stored_accounts.every(session, user_id)
    meant = [account for account in owned if account.id in wanted]
    said = warnings(of_accounts(session, user_id, meant, today=today), meant)
    sentences = (questions_of(owned), taken_back_lately(session, user_id, meant, today=today), said)
    return [text for account in meant for of_account in sentences for text in of_account.get(account.id, ())]


def questions_of(owned: Sequence[StoredAccount]) -> dict[str, list[Message]]:
    """By account id: a list of one, the question for its user whether the account is the same as another one of theirs;
    other accounts are absent."""
    by_id = {account.id: account for account in owned}
    return {
        account.id: [_about(account, Message(PERHAPS_SAME, other=by_id[account.same_as].label))]
        for account in owned
        if account.same_as in by_id
    }


def taken_back_lately(
    session: Session, user_id: str, accounts: Sequence[StoredAccount], *, today: date
) -> dict[str, list[Message]]:
    """By account id: a sentence for each booking that a bank has taken back in the last seven days, the latest booking
    date first; accounts without any are absent."""
    by_id, said = {account.id: account for account in accounts}, dict[str, list[Message]]()
    for row in stored_transactions.list_taken_back(session, user_id, list(by_id)):
        if row["taken_back_at"] is not None and row["taken_back_at"].date() > today - SAID_FOR:
            text = Message(TAKEN_BACK, amount=Amount.of(row["amount"], row["currency"]), first=row["booking_date"])
            said.setdefault(row["account_id"], []).append(_about(by_id[row["account_id"]], text))
    return said


def sentence(problem: LedgerProblem, currency: str) -> Message:
    """The problem as an English sentence, with its days and, if it is known, its amount."""
    days = {"first": problem.first, "last": problem.last}
    if problem.amount is None:
        return Message(MISSING, **days)
    return Message(SENTENCES[problem.kind], **days, amount=Amount.of(problem.amount, currency))


def warnings(found: Iterable[AccountIntegrity], accounts: Iterable[StoredAccount]) -> dict[str, list[Message]]:
    """The sentences on what makes an account's figures wrong, each beginning with the account's name, by account id;
    sound accounts are absent."""
    by_id = {account.id: account for account in accounts}
    said: dict[str, list[Message]] = {}
    for each in found:
        account = by_id[each.account_id]
        unsound = [sentence(problem, account.currency) for problem in each.problems if problem.is_unsound]
        if unsound:
            said[each.account_id] = [_about(account, text) for text in unsound]
    return said


def _about(account: StoredAccount, text: Message) -> Message:
    return Message("{name}: {reason}", name=account.label, reason=text)
