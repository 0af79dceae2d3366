"""`bankdata`, traced from when a server is loaded: to trace its loading, too, takes twice the time of a start, and
tells nothing, for tests load the same modules. Several processes of one server load this file again, and are traced by
what stands in their environment."""

import gc
import os

import coverage

if __name__ == "__main__":
    gc.disable()  # what is loaded stays
    import handlers.server  # noqa: F401
    from handlers.cli import main

    gc.enable()
    os.environ["COVERAGE_PROCESS_CONFIG"] = os.environ.pop("COVERAGE_AFTER_LOADING")
    coverage.process_startup()
    main()
