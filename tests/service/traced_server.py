"""`bankdata`, traced from when a server is loaded: to trace its loading, too, takes twice the time of a start, and
tells nothing, for tests load the same modules."""

import gc
import os

import coverage

gc.disable()  # what is loaded stays
import handlers.server  # noqa: E402, F401
from handlers.cli import main  # noqa: E402

gc.enable()
os.environ["COVERAGE_PROCESS_CONFIG"] = os.environ.pop("COVERAGE_AFTER_LOADING")
coverage.process_startup()
main()
