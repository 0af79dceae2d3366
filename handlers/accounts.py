"""GET /accounts (interface 4.2)."""

from handlers import wire
from handlers.request import Answer, Request
from handlers.services import Services
from storage import accounts


def list_accounts(services: Services, request: Request) -> Answer:
    """All accounts of the user with their current balances."""
    owned = accounts.of_user(services.database, request.principal.user_id)
    return Answer(body={"accounts": [wire.account(account) for account in owned]})
