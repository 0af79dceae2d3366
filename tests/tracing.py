"""The tracer of coverage, put aside for what need not be traced."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from coverage import Coverage


@contextmanager
def untraced() -> Iterator[None]:
    """The block, and the processes that it starts, run without the tracer, which makes Python two to three times as
    slow."""
    tracer = Coverage.current() if sys.gettrace() is not None else None
    hidden = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("COVERAGE_")}
    if tracer is not None:
        tracer.stop()
    try:
        yield
    finally:
        if tracer is not None:
            tracer.start()
        os.environ.update(hidden)
