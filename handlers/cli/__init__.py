"""The command line `bankdata`. Its commands work whether or not a server runs; if one runs, it does the work."""

import atexit
import gc
import os
import sys
from contextlib import suppress
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import click

from handlers.cli.interrupts import die_if_told, interruptible


class _Program(click.Group):
    """The commands as a program. It ends its process as soon as all is said and closed: Python would take apart what is
    loaded, object by object, for a fifth of the time of a command."""

    def __call__(self, *arguments: Any, **given: Any) -> None:
        """Run the command that was typed; then flush its output and end the process with its exit code."""
        code = 1

        @atexit.register  # before all others, and so called after them
        def end() -> None:
            for stream in filter(None, (sys.stdout, sys.stderr)):  # one that is closed is None
                with suppress(OSError):  # what nobody reads or no disk takes has made the command fail before
                    stream.flush()
            die_if_told()
            os._exit(code)

        try:
            self.main(*arguments, **given)
        except SystemExit as ended:
            code = int(ended.code or 0)
            raise


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="banking-data-service", prog_name="bankdata")
def main() -> None:
    """Read access to your own bank accounts, for the apps and assistants you allow.

    Try it: `bankdata demo`. For real: `bankdata users add NAME`, `bankdata connect ...`, `bankdata serve`.
    Settings come from the environment (BANKDATA_...); docs/settings.md lists them.
    """
    click.get_current_context().with_resource(interruptible())
    gc.set_threshold(500_000, 10, 10)  # what is loaded stays anyway: searching it took a tenth of a server's start
    os.umask(0o077)  # every file is about somebody's money: no other user of this machine may read it


for found in iter_modules(__path__):
    for name, command in vars(import_module(f"{__name__}.{found.name}")).items():
        if isinstance(command, click.Command) and not name.startswith("_"):  # those with _ are parts of a group
            main.add_command(command)
