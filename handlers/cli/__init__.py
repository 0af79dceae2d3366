"""The command line `bankdata`. Its commands work whether or not a server runs; if one runs, it does the work."""

import gc
import os

import click

from handlers.cli import (
    access_arguments,
    account_arguments,
    bench_arguments,
    connection_arguments,
    file_arguments,
    profile_arguments,
    rate_arguments,
    rule_arguments,
    serving,
    upkeep_arguments,
    user_arguments,
    word_arguments,
)
from handlers.cli.interrupts import interruptible


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="banking-data-service", prog_name="bankdata")
def main() -> None:
    """Read access to your own bank accounts, for the apps and assistants you allow.

    Try it: `bankdata demo`. For real: `bankdata users add NAME`, `bankdata connect ...`, `bankdata serve`.
    Settings come from the environment (BANKDATA_...); docs/settings.md lists them.
    """
    click.get_current_context().with_resource(interruptible())
    gc.set_threshold(10_000, 10, 10)  # loaded modules stay anyway: at 700, collecting took a twentieth of a start
    os.umask(0o077)  # every file is about somebody's money: no other user of this machine may read it


COMMANDS: tuple[click.Command, ...] = (
    serving.demo,
    serving.serve,
    user_arguments.users,
    connection_arguments.connect,
    connection_arguments.connections,
    connection_arguments.sync,
    file_arguments.import_,
    file_arguments.export,
    account_arguments.accounts,
    account_arguments.alerts,
    file_arguments.imports,
    rule_arguments.rules,
    rule_arguments.correct,
    word_arguments.annotate,
    word_arguments.words,
    word_arguments.categories,
    word_arguments.targets,
    rule_arguments.subscriptions,
    profile_arguments.profiles,
    rate_arguments.rates,
    access_arguments.token,
    access_arguments.simplefin_token,
    access_arguments.calendar,
    access_arguments.clients,
    access_arguments.grants,
    access_arguments.log,
    access_arguments.keys,
    access_arguments.registration_token,
    upkeep_arguments.check,
    upkeep_arguments.backup,
    upkeep_arguments.upgrade_check,
    upkeep_arguments.restore_drill,
    upkeep_arguments.migrate_store,
    upkeep_arguments.distribute,
    upkeep_arguments.build_indexes,
    upkeep_arguments.compact,
    upkeep_arguments.clock,
    upkeep_arguments.capacity,
    bench_arguments.bench,
)
for command in COMMANDS:
    main.add_command(command)
