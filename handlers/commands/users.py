"""Commands on users, the people who may sign in: add, list, change, remove."""

from collections.abc import Mapping

from auth.people.names import NAME_CHARACTERS_MAX, NAME_PUNCTUATION, as_stored, is_good_name
from auth.people.new_passwords import LENGTH_MIN, Weakness, weakness
from auth.people.provider_sign_in import ProviderSignIn
from handlers.commands.connections import say_what_is_left
from handlers.commands.control_socket import CommandError, Report
from handlers.commands.counts import quantity
from handlers.operations.profile import keep_home_currency
from handlers.people import remove_person
from handlers.work.services import IS_DEMO, Services
from storage import connections, store_facts, users

NAMES = (
    f"A user's name has 1 to {NAME_CHARACTERS_MAX} letters, digits and {' '.join(NAME_PUNCTUATION)}, and begins with a"
    " letter or a digit."
)

WEAK: Mapping[Weakness, str] = {
    "short": f"The password is too short: use {LENGTH_MIN} characters or more.",
    "long": "The password is too long.",
    "common": "The password is among the common ones that attackers try first. Use another.",
    "name": "The password contains the user's name. Use another.",
}


def add_user(
    services: Services, report: Report, *, name: str, password: str, is_generated: bool, has_subscription: bool
) -> None:
    """Add a person who may sign in; print the password if it `is_generated`. CommandError for a name that may not be
    used or a weak password."""
    name = as_stored(name)
    if not is_good_name(name):
        raise CommandError(NAMES)
    users.add(
        services.everybody,
        name=name,
        password_hash=_password_hash(services, password, user_name=name),
        has_subscription=has_subscription,
        home_currency=services.settings.home_currency,
        now=services.clock.now(),
    )
    report.note(f"Added user {name}. {_next_step(services, name)}")
    if is_generated:
        report.line(password)


def list_users(services: Services, report: Report) -> None:
    """List the users by name, one a line: name, subscription, number of bank connections."""
    everyone = users.everyone(services.everybody)
    for user in everyone:
        count = len(connections.of_user(services.everybody, user.id))
        state = "active subscription" if user.has_subscription else "no subscription"
        state += ", operator" * user.is_operator + ", paused" * (user.paused_at is not None)
        report.line(f"{user.name}\t{state}\t{quantity(count, 'bank connection')}")
    if not everyone:
        report.note("There are no users yet. Add one with `bankdata users add NAME`.")


def change_password(services: Services, report: Report, *, name: str, password: str, is_generated: bool) -> None:
    """Change the password, sign the user's browsers out, end their links, and note it in their access record; print the
    password if it `is_generated`. CommandError for a weak one."""
    user = users.get_by_name(services.everybody, name)
    hashed = _password_hash(services, password, user_name=user.name)
    services.authorization.password_change.set(user, hashed, "changePassword")
    report.note(f"Changed the password of {user.name}.")
    if is_generated:
        report.line(password)


def turn_off_second_factor(services: Services, report: Report, *, name: str) -> None:
    """Turn off the second factor of a user who has lost it, and the recovery codes with it; from then on the password
    is enough. CommandError if they have none."""
    user = users.get_by_name(services.everybody, name)
    if not services.authorization.second_factors.turn_off(user.id):
        raise CommandError(f"{user.name} has no second factor.")
    report.note(f"{user.name} signs in with the password alone now.")


def set_subscription(services: Services, report: Report, *, name: str, active: bool) -> None:
    """Set whether a user has a subscription, and note it in their access record: without one, the data endpoints refuse
    and point to the billing page."""
    user = users.get_by_name(services.everybody, name)
    users.set_subscription(services.everybody, user.id, active=active)
    services.authorization.access.forget()
    services.authorization.record.note(user.id, "changeSubscription")
    report.note(f"{user.name} has {'an active' if active else 'no'} subscription now.")


def set_currency(services: Services, report: Report, *, name: str, currency: str) -> None:
    """Set the home currency, that of a user's figures over several currencies (decision 19); raises NoRate for one
    without a reference rate."""
    user = users.get_by_name(services.everybody, name)
    keep_home_currency(services, user.id, currency)
    report.note(f"Figures over several currencies are in {currency} for {user.name} now.")


def remove_user(services: Services, report: Report, *, name: str) -> None:
    """End the user's access at the banks, noting where that failed, then delete the user with all accounts,
    transactions and grants."""
    user = users.get_by_name(services.everybody, name)
    say_what_is_left(report, remove_person(services, user))
    report.note(f"Removed user {user.name} with all data.")


def invite(services: Services, report: Report) -> None:
    """Make and print an address at which somebody can become a user, once, within seven days."""
    report.line(services.authorization.links.invite())


def revoke_invitations(services: Services, report: Report) -> None:
    """End all invitations that nobody has used."""
    ended = [each for each in services.authorization.links.invitations() if _revoke(services, each.secret_hash)]
    report.note(f"Revoked {quantity(len(ended), 'invitation')}.")


def make_password_link(services: Services, report: Report, *, name: str) -> None:
    """Make and print an address at which a user's password can be set anew, once, within 24 hours; their second factor
    is still asked, and they are told at their next sign-in."""
    user = users.get_by_name(services.everybody, name)
    report.line(services.authorization.links.new_password(user))


def make_sign_in_link(services: Services, report: Report, *, name: str) -> None:
    """Make and print an address at which a user can sign in once, within ten minutes; their second factor is still
    asked, and they are told at their next sign-in."""
    user = users.get_by_name(services.everybody, name)
    report.line(services.authorization.links.sign_in_link(user))


def link(services: Services, report: Report, *, name: str, subject: str) -> None:
    """Link a user to the person whom the provider names by this subject. CommandError without a provider, and where
    either has another one already."""
    user, provider = users.get_by_name(services.everybody, name), _provider(services)
    ended = provider.link_subject(user.id, subject)
    if ended is not None:
        whose = f"{user.name} has another account" if ended == "has_one" else "Somebody else signs in as this person"
        raise CommandError(f"{whose} at {provider.settings.name} already. `bankdata users unlink` ends that.")
    report.note(f"{user.name} can sign in at {provider.settings.name} now.")


def unlink(services: Services, report: Report, *, name: str) -> None:
    """Unlink a user from the provider; notes it where they have no other way in. CommandError where they are not
    linked."""
    user = users.get_by_name(services.everybody, name)
    if not _provider(services).unlink(user.id):
        raise CommandError(f"{user.name} is not linked.")
    report.note(f"Unlinked {user.name}. Browsers that were signed in this way are signed out.")
    if not services.authorization.has_way_in(user):
        report.note(f"{user.name} has no way in now: `bankdata users password-link {user.name}` makes one.")


def _provider(services: Services) -> ProviderSignIn:
    provider = services.authorization.provider
    if provider is None:
        raise CommandError("No provider is set: BANKDATA_OIDC_ISSUER.")
    return provider


def mark_operator(services: Services, report: Report, *, name: str, active: bool) -> None:
    """Make a user an operator, or end that, and note it in their access record; LastOperator for the last one."""
    user = users.get_by_name(services.everybody, name)
    services.authorization.operators.mark(user, is_operator=active)
    report.note(f"{user.name} is {'an' if active else 'no'} operator now.")


def pause(services: Services, report: Report, *, name: str) -> None:
    """Pause a user: no sign-in, no apps, no syncs. Nothing is deleted; LastOperator for the last operator."""
    user = users.get_by_name(services.everybody, name)
    services.authorization.operators.pause(user)
    report.note(f"Paused {user.name}. `bankdata users unpause {user.name}` lets them go on.")


def unpause(services: Services, report: Report, *, name: str) -> None:
    """Let a paused user go on."""
    user = users.get_by_name(services.everybody, name)
    services.authorization.operators.unpause(user)
    report.note(f"{user.name} may sign in again.")


def _revoke(services: Services, secret_hash: str) -> bool:
    return services.authorization.links.revoke(secret_hash)


def _next_step(services: Services, name: str) -> str:
    if store_facts.recall(services.everybody, IS_DEMO) is None:
        return f"Bring in bank statements with `bankdata import FILE --user {name}`."
    return f"Connect a bank with `bankdata connect demo --user {name}`."


def _password_hash(services: Services, password: str, *, user_name: str) -> str:
    fault = weakness(password, user_name=user_name)
    if fault:
        raise CommandError(WEAK[fault])
    return services.authorization.passwords.hash(password)
