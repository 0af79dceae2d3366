"""The commands by name: functions over an open service, run in this process or inside a running server."""

import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from handlers.commands import (
    access,
    accounts,
    connections,
    exports,
    imports,
    profiles,
    rules,
    syncs,
    upkeep,
    users,
)
from handlers.commands.control_socket import Report
from handlers.commands.failures import failures_in_words
from handlers.commands.people import notices, shares
from handlers.commands.recurring import subscriptions
from handlers.commands.words import annotations, own_categories, portable, targets
from handlers.work.services import Services
from storage import users as stored_users

Command = Callable[..., None]
"""`def name(services, report, *, ...)`; raises CommandError. What is typed as `user`, a name, arrives as the `User`."""

READING: Mapping[str, Command] = {
    "users list": users.list_users,
    "connections list": connections.list_connections,
    "rules list": rules.list_rules,
    "shares list": shares.list_shares,
    "categories list": own_categories.list_categories,
    "targets list": targets.list_targets,
    "notices list": notices.list_notices,
    "notices settings": notices.show_settings,
    "notices targets": notices.list_targets,
    "words export": portable.export_words,
    "subscriptions list": subscriptions.list_subscriptions,
    "profiles list": profiles.list_profiles,
    "profiles kept": profiles.print_layouts,
    "clients list": access.list_clients,
    "grants list": access.list_grants,
    "log": access.show_record,
    "registration-token": access.print_registration_token,
    "check": upkeep.check,
}
"""Commands that change nothing and hand out no secret: the log leaves their success out."""

COMMANDS: Mapping[str, Command] = {
    **READING,
    "notices test": notices.test_target,
    "users add": users.add_user,
    "users passwd": users.change_password,
    "users second-factor": users.turn_off_second_factor,
    "users subscription": users.set_subscription,
    "users currency": users.set_currency,
    "users remove": users.remove_user,
    "users invite": users.invite,
    "users uninvite": users.revoke_invitations,
    "users password-link": users.make_password_link,
    "users sign-in-link": users.make_sign_in_link,
    "users link": users.link,
    "users unlink": users.unlink,
    "users operator": users.mark_operator,
    "users pause": users.pause,
    "users unpause": users.unpause,
    "connect": connections.connect_bank,
    "connect folder": connections.connect_folder,
    "connect live": connections.connect_live,
    "connections remove": connections.remove_connection,
    "sync": syncs.sync,
    "import": imports.import_files,
    "export": exports.export_bookings,
    "accounts list": accounts.list_accounts,
    "accounts rename": accounts.rename_account,
    "accounts credit-line": accounts.set_credit_line,
    "accounts hide": accounts.hide_account,
    "accounts show": accounts.hide_account,
    "accounts merge": accounts.merge_accounts,
    "accounts separate": accounts.separate_accounts,
    "accounts delete": accounts.delete_account,
    "alerts balance": accounts.watch_balance,
    "imports list": imports.list_imports,
    "imports undo": imports.undo_import,
    "shares add": shares.add_share,
    "shares accept": shares.accept_share,
    "shares end": shares.end_share,
    "rules add": rules.add_rules,
    "rules remove": rules.remove_rule,
    "rules edit": rules.edit_rule,
    "rules order": rules.order_rules,
    "rules apply": rules.apply_rules,
    "annotate": annotations.annotate,
    "categories add": own_categories.add_category,
    "categories rename": own_categories.rename_category,
    "categories remove": own_categories.remove_category,
    "targets set": targets.set_target,
    "words import": portable.import_words,
    "subscriptions add": subscriptions.add_subscription,
    "subscriptions remove": subscriptions.remove_subscription,
    "subscriptions confirm": subscriptions.decide_subscription,
    "subscriptions dismiss": subscriptions.decide_subscription,
    "subscriptions reset": subscriptions.decide_subscription,
    "correct": rules.correct_category,
    "profiles add": profiles.add_profile,
    "profiles remove": profiles.remove_profile,
    "rates update": upkeep.install_rates,
    "token": access.print_token,
    "simplefin-token": access.print_setup_token,
    "calendar link": access.print_calendar_link,
    "calendar revoke": access.end_calendar_link,
    "clients add": access.add_client,
    "clients remove": access.remove_client,
    "grants revoke": access.revoke_grant,
    "keys rotate": access.rotate_keys,
    "keys reseal": access.reseal_keys,
    "notices renew-push-key": access.renew_push_key,
    "backup": upkeep.back_up,
    "compact": upkeep.compact,
    "clock advance": upkeep.advance_clock,
}


log = logging.getLogger("bankdata.commands")


def perform(services: Services, name: str, arguments: Mapping[str, Any], report: Report) -> None:
    """Carry out a command by name; every expected failure becomes a CommandError. Logs the outcome, but not the success
    of a command that only reads, with the name of the command and the id of the user, and no person's name (decision
    52)."""
    user_id: str | None = None

    def note(failure: type[BaseException] | None, *_: object) -> None:
        whom = user_id if failure or user_id else _id_of_changed(services, name, arguments)
        if failure or name not in READING:
            log.info("command=%s user=%s outcome=%s", name, whom, failure.__name__ if failure else "done")

    with ExitStack() as ending:
        ending.push(note)
        ending.enter_context(failures_in_words())
        user_id = _id_of_changed(services, name, arguments)
        if arguments.get("user") is not None:
            user = stored_users.get_by_name(services.everybody, arguments["user"])
            user_id, arguments = user.id, {**arguments, "user": user}
        COMMANDS[name](services, report, **arguments)


def _id_of_changed(services: Services, command: str, arguments: Mapping[str, Any]) -> str | None:
    """The id of the user whom a command of `users` adds or changes; None for other commands, and where the user does
    not exist (yet)."""
    is_about = command.startswith("users ") and "name" in arguments
    user = stored_users.find_by_name(services.everybody, arguments["name"]) if is_about else None
    return user.id if user else None
