"""The command line `bankdata`. Its commands work whether or not a server runs: then they ask it to do the work."""

import os

import click

from handlers.cli import access, connections, files, rates, rules, serving, upkeep, users
from handlers.cli.interrupts import interruptible


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="banking-data-service", prog_name="bankdata")
def main() -> None:
    """Read access to your own bank accounts, for the apps and assistants you allow.

    Try it: `bankdata demo`. For real: `bankdata users add NAME`, `bankdata connect ...`, `bankdata serve`.
    Settings come from the environment (BANKDATA_...); docs/operations.md lists them.
    """
    click.get_current_context().with_resource(interruptible())
    os.umask(0o077)  # whatever is written is about somebody's money: nobody else reads it, wherever the folder is


COMMANDS: tuple[click.Command, ...] = (
    serving.demo,
    serving.serve,
    users.users,
    connections.connect,
    connections.connections,
    connections.sync,
    files.import_,
    files.export,
    rules.rules,
    rules.correct,
    rates.rates,
    access.token,
    access.clients,
    access.grants,
    access.keys,
    access.registration_token,
    upkeep.check,
    upkeep.backup,
    upkeep.compact,
    upkeep.clock,
)
for command in COMMANDS:
    main.add_command(command)
