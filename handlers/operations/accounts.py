"""GET /accounts (interface 4.2)."""

from handlers import json_shapes
from handlers.cache.user_data import UserData
from handlers.http.request import Answer, Request
from handlers.operations.selection import covered_accounts
from handlers.services import Services


def list_accounts(_services: Services, request: Request, reading: UserData) -> Answer:
    """All accounts of the user with their current balances."""
    statuses = reading.statuses
    return Answer(
        body={
            "accounts": [
                json_shapes.account(each, statuses[each.connection_id])
                for each in covered_accounts(reading.accounts, request.principal)
            ]
        }
    )
