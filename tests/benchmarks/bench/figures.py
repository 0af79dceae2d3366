"""What was measured: requests, latencies, processor time and memory, by server and operation."""

import os
import platform
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from tests.benchmarks.bench.data import Size
from tests.benchmarks.bench.load import Answered


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to measure; `seconds` are those of one operation on one server."""

    sizes: Sequence[Size]
    connections: int
    seconds: float
    with_peers: bool


@dataclass(slots=True)
class Figures:
    """What an operation cost on one server."""

    seconds: float = 0.0
    processor_seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)  # seconds, one per answer

    def add(self, answered: Answered, processor_seconds: float) -> None:
        """What one more round came to."""
        self.seconds += answered.seconds
        self.processor_seconds += processor_seconds
        self.latencies.extend(answered.latencies)

    @property
    def answers(self) -> int:
        """How many requests were answered, all with 200."""
        return len(self.latencies)

    @property
    def per_second(self) -> float:
        """Requests a second."""
        return self.answers / self.seconds

    @property
    def p50(self) -> float:
        """Milliseconds that half of the answers took at most."""
        return statistics.median(self.latencies) * 1000

    @property
    def p99(self) -> float:
        """Milliseconds that 99 in 100 answers took at most."""
        return sorted(self.latencies)[int(len(self.latencies) * 0.99)] * 1000

    @property
    def processor(self) -> float:
        """Milliseconds of processor time of the server for one request."""
        return self.processor_seconds / self.answers * 1000


By = dict[str, dict[str, Figures]]
"""Figures by server, then by operation."""


@dataclass(slots=True, kw_only=True)
class Results:
    """What was measured; `ours` are the names of our own servers, smallest store first."""

    plan: Plan
    at: datetime
    ours: list[str] = field(default_factory=list)
    warm: By = field(default_factory=lambda: defaultdict(dict))
    cold: By = field(default_factory=lambda: defaultdict(dict))
    memory: dict[str, int] = field(default_factory=dict)  # bytes, by server
    loads: list[float] = field(default_factory=list)  # of the machine, before each operation

    @property
    def machine(self) -> str:
        """What it ran on: cores, load, Python."""
        load = statistics.median(self.loads)
        return f"{os.cpu_count()} cores, load {load:.1f}, {platform.system()}, Python {platform.python_version()}"
