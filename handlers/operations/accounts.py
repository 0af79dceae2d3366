"""GET /accounts (interface 4.2)."""

from handlers import wire
from handlers.http.request import Answer, Request
from handlers.services import Services
from storage import accounts, connections


def list_accounts(services: Services, request: Request) -> Answer:
    """All accounts of the user with their current balances."""
    user_id = request.principal.user_id
    owned = accounts.of_user(services.database, user_id)
    status = connections.statuses(services.database, user_id)
    return Answer(body={"accounts": [wire.account(each, status[each.connection_id]) for each in owned]})
