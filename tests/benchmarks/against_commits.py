"""Whether requests cost more than they did at earlier commits, over the embedded store.

    python tests/benchmarks/against_commits.py COMMIT [COMMIT ...] [--rows 100000] [--rounds 10] [--seconds 0.5]

The first commit fills a store. Each commit, and the working tree at last, serves a copy of it, brought up to date where
it has to be, and all of them are asked the same by turns, in another order each round. Told is the median over the
rounds of the processor time of one request, as a part of what it takes at the first commit, with the interval in which
it lies by the sign test (95 %).
"""

import argparse
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
from collections import defaultdict
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

# a script's own folder comes first on the path
ROOT = Path(__file__).resolve().parents[2]
sys.path[0] = str(ROOT)

from tests.archives import unpack  # noqa: E402 - after the line above
from tests.benchmarks.bench.load import Load, drive  # noqa: E402 - after the line above
from tests.benchmarks.bench.servers import MeasuredServer, free_port, running  # noqa: E402
from tests.benchmarks.bench.store import Audience, Someone  # noqa: E402
from tests.benchmarks.unrestricted import interval  # noqa: E402

WORKED = ("page", "category filter", "search", "one transaction", "cashflow", "repeated request")
NOW = "working tree"
FILL = """
import dataclasses, json
from pathlib import Path
from tests.benchmarks.bench.data import Size
from tests.benchmarks.bench.store import filled

class Silent:
    def progress(self, *_said):
        pass

made = filled(Path({folder!r}), Size(rows={rows}, rows_each=1000), Silent())
print(json.dumps([[dataclasses.asdict(each) for each in made.warm], made.today.isoformat()]))
"""
SERVE = "from handlers.cli import main; main()"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("commits", nargs="+")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.5, help="of one server in one round")
    options = parser.parse_args()
    with TemporaryDirectory() as folder, ExitStack() as stack:
        trees = {commit: _tree(commit, Path(folder)) for commit in options.commits} | {NOW: ROOT}
        audience = _filled(trees[options.commits[0]], Path(folder) / "filled", options.rows)
        servers = [_serving(stack, name, tree, audience, Path(folder)) for name, tree in trees.items()]
        print(f"load {os.getloadavg()[0]:.1f}", flush=True)
        found = _measured(servers, options.rounds, options.seconds)
    for work in WORKED:
        base = found[servers[0].name, work]
        print(f"{work}: {1000 * median(base):.3f} ms at {servers[0].name}")
        for server in servers[1:]:
            ratios = sorted(here / there for here, there in zip(found[server.name, work], base, strict=True))
            low, high = interval(ratios)
            print(f"  {server.name}: {median(ratios):.3f} of that ({low:.3f} to {high:.3f})")
    print(f"load {os.getloadavg()[0]:.1f}")


def _tree(commit: str, folder: Path) -> Path:
    """The files of a commit."""
    tree = folder / f"tree of {commit}"
    files = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=io.BytesIO(files)) as archive:
        unpack(archive, tree)
    return tree


def _program(tree: Path, text: str) -> list[str]:
    """Arguments to Python that run this text with the modules of a tree."""
    return ["-c", f"import sys; sys.path.insert(0, {str(tree)!r})\n{text}"]


def _filled(tree: Path, folder: Path, rows: int) -> Audience:
    """A store made by a tree, and who asks."""
    text = FILL.format(folder=str(folder), rows=rows)
    said = subprocess.run(
        [sys.executable, *_program(tree, text)], cwd="/", check=True, stdout=subprocess.PIPE, text=True
    )
    warm, today = json.loads(said.stdout.splitlines()[-1])
    return Audience(warm=[Someone(**each) for each in warm], cold=[], today=date.fromisoformat(today))


def _serving(stack: ExitStack, name: str, tree: Path, audience: Audience, folder: Path) -> MeasuredServer:
    store, port = folder / f"store of {name}", free_port()
    shutil.copytree(folder / "filled", store)
    arguments = [*_program(tree, SERVE), "serve", "--port", str(port), "--data", str(store)]
    return stack.enter_context(running(name, arguments, port, audience, folder))


def _measured(servers: list[MeasuredServer], rounds: int, seconds: float) -> dict[tuple[str, str], list[float]]:
    """Processor seconds of one request, by server and work, round by round; the first round is not counted."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    order = list(servers)
    for number in range(rounds + 1):
        for work in WORKED:
            random.Random(f"{number} {work}").shuffle(order)
            for server in order:
                before = server.processor_seconds()
                load = Load(
                    port=server.port,
                    work=work,
                    users=server.audience.warm,
                    today=server.audience.today,
                    connections=4,
                    seconds=seconds,
                    seed=number,
                )
                answers = len(drive(load).latencies)
                if number:
                    found[server.name, work].append((server.processor_seconds() - before) / answers)
    return found


if __name__ == "__main__":
    main()
