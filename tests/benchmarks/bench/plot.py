"""What was measured as a picture: SVG, bars by operation and server on a logarithmic scale."""

import math
from collections.abc import Callable, Iterator, Mapping
from html import escape

from tests.benchmarks.bench.figures import By, Figures, Results

COLOURS = ("#1a6fb5", "#6fb1e0", "#b9d8ef", "#e08a2e", "#c94f4f", "#7a5ca8", "#8f8f8f", "#c9c9c9")
WIDTH, LABELS, BAR, GAP, TITLE = 900, 210, 9, 6, 40
FONT = 'font-family="sans-serif" font-size="12"'
SCALE = 560  # pixels from the smallest power of ten to the largest


def plot(results: Results) -> str:
    """One panel each: requests a second, p50, p99, processor time warm and cold, memory."""
    of: list[tuple[str, By, Callable[[Figures], float]]] = [
        ("requests a second, warm", results.warm, lambda figures: figures.per_second),
        ("p50 in ms, warm", results.warm, lambda figures: figures.p50),
        ("p99 in ms, warm", results.warm, lambda figures: figures.p99),
        ("processor time of the server in ms a request, warm", results.warm, lambda figures: figures.processor),
        ("the same, first touch of a user", results.cold, lambda figures: figures.processor),
    ]
    panels = {title: _values(by, value) for title, by, value in of if by}
    panels["memory of the server in MB"] = {"": {name: size / 2**20 for name, size in results.memory.items()}}
    colours = dict(zip(results.memory, (COLOURS * len(results.memory))[: len(results.memory)], strict=True))
    parts = list(_legend(results, colours))
    y = 60 + 16 * len(colours)
    for title, rows in panels.items():
        parts.append(f'<text x="10" y="{y + 24}" font-weight="bold">{escape(title)}</text>')
        y += TITLE
        low, high = _decades([value for row in rows.values() for value in row.values()])
        for label, row in rows.items():
            parts.append(f'<text x="10" y="{y + BAR}">{escape(label)}</text>')
            for server, value in row.items():
                length = SCALE * (math.log10(max(value, 10**low)) - low) / (high - low)
                parts.append(
                    f'<rect x="{LABELS}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{colours[server]}"/>'
                )
                parts.append(f'<text x="{LABELS + length + 4:.1f}" y="{y + BAR - 1}" font-size="9">{value:,.4g}</text>')
                y += BAR + 1
            y += GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 10}" {FONT}>'
    return "\n".join((head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>\n"))


def _legend(results: Results, colours: Mapping[str, str]) -> Iterator[str]:
    size = results.plan.sizes[-1]
    yield (
        f'<text x="10" y="24" font-size="14">{results.at:%-d %B %Y}, {size.rows:,} bookings,'
        f" {results.plan.connections} connections, {escape(results.machine)}; logarithmic</text>"
    )
    for number, (server, colour) in enumerate(colours.items()):
        yield f'<rect x="10" y="{38 + 16 * number}" width="10" height="10" fill="{colour}"/>'
        yield f'<text x="26" y="{47 + 16 * number}">{escape(server)}</text>'


def _values(by: By, value: Callable[[Figures], float]) -> dict[str, dict[str, float]]:
    """By operation, then by server."""
    works = {name: None for figures in by.values() for name in figures}
    return {work: {server: value(of[work]) for server, of in by.items() if work in of} for work in works}


def _decades(values: list[float]) -> tuple[int, int]:
    """The powers of ten around them."""
    low = math.floor(math.log10(max(min(values), 1e-3)))
    return low, max(low + 1, math.ceil(math.log10(max(*values, 1e-3))))
