"""`python -m tests.simulators NAME [PORT]`: a simulated provider on this machine, for anybody who wants to try one."""

import sys
from contextlib import suppress
from importlib import import_module

NAMES = ("simplefin", "enable-banking", "finapi", "fints")


def main(arguments: list[str]) -> None:
    """Serve the simulator of this name until Ctrl-C; without a port on a free one."""
    if not arguments or arguments[0] not in NAMES:
        sys.exit(f"Usage: python -m tests.simulators {'|'.join(NAMES)} [PORT]")
    module = import_module(f"tests.simulators.{arguments[0].replace('-', '_')}")
    with suppress(KeyboardInterrupt):
        module.serve(int(arguments[1]) if len(arguments) > 1 else 0)


main(sys.argv[1:])
