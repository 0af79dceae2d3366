"""GET /integrity: whether the bookings of accounts agree with their statements and balances."""

from analytics.integrity import AccountIntegrity, Kind, LedgerProblem
from analytics.statements.ledger_periods import LedgerPeriod
from auth.principal import Principal
from handlers import integrity_sentences
from handlers.json_shapes import instant, money
from handlers.names import Json
from handlers.operations.selection import selected_or_all
from handlers.web.request import Answer, Request
from handlers.work.cache.user_data import UserData
from handlers.work.services import Services
from storage import accounts

OF_ONE_BOOKING: frozenset[Kind] = frozenset({"possible_duplicate", "old_pending"})


def get_integrity(services: Services, request: Request, _reading: UserData, *, account_ids: str | None) -> Answer:
    """List the periods between the known balances of each account, and every contradiction in them, to the cent. A
    grant of figures only gets no periods, and no contradictions of single bookings."""
    caller, now = request.principal, services.clock.now()
    with services.of(caller.user_id).transaction() as session:
        owned = accounts.of_user(session, caller.user_id)
        selected = selected_or_all(owned, account_ids, caller)
        findings = integrity_sentences.of_accounts(
            session, caller.user_id, selected.accounts, today=services.clock.today()
        )
    body = {
        "checkedAt": instant(now),
        "isSound": all(each.is_sound for each in findings),
        "accounts": [
            _account(each, account.currency, caller) for each, account in zip(findings, selected.accounts, strict=True)
        ],
    }
    return Answer(body=body)


def _account(value: AccountIntegrity, currency: str, caller: Principal) -> Json:
    return {
        "accountId": value.account_id,
        "currency": currency,
        "isSound": value.is_sound,
        # Sums from one day's balance to the next one's would reveal bookings
        "periods": [] if caller.figures_only else [_period(each, currency) for each in value.periods],
        # A grant of figures only learns nothing of single bookings
        "problems": [
            _problem(each, currency, caller)
            for each in value.problems
            if not (caller.figures_only and each.kind in OF_ONE_BOOKING)
        ],
    }


def _period(value: LedgerPeriod, currency: str) -> Json:
    amounts = ("opening", "bookings", "closing", "difference")
    return {
        "from": value.first.isoformat(),
        "until": value.last.isoformat(),
        **{name: money(getattr(value, name), currency) for name in amounts},
    }


def _problem(value: LedgerProblem, currency: str, caller: Principal) -> Json:
    return {
        "kind": value.kind,
        "from": value.first.isoformat(),
        "until": value.last.isoformat(),
        "amount": money(value.amount, currency) if value.amount is not None else None,
        "transactionIds": [] if caller.figures_only else list(value.transaction_ids),
        "message": integrity_sentences.sentence(value, currency),
    }
