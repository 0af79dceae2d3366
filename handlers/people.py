"""What the command line and the operator's page do to people alike."""

from collections.abc import Sequence

from handlers.work.services import Services
from storage import connections, users
from storage.connections import StoredConnection
from storage.users import User


def remove_person(services: Services, user: User, *, by: User | None = None) -> Sequence[tuple[StoredConnection, str]]:
    """Delete a user with everything of theirs, after ending their access at the banks; `by` is the operator who did it,
    None for a command. Returns the connections whose access could not be ended at the provider, each with the reason as
    a sentence. Raises LastOperator, and then nothing has changed."""
    if user.is_operator:
        services.authorization.operators.mark(user, is_operator=False, by=by)
    left = services.connecting.disconnect(connections.of_user(services.everybody, user.id))
    services.authorization.remove_user(user.id)
    services.everybody.atomically(lambda session: users.remove(session, user.id))
    services.authorization.operators.note(user, "removeUser", by=by)
    return left
