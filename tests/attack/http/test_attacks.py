"""Every attack in its small form against a real server: others are answered, memory stays, the log holds no tracebacks.

Only the median is held here: what the slowest of some hundred requests took says on a busy machine how busy it is. The
command of `__main__.py` holds both, in large.
"""

from collections.abc import Iterator

import pytest

from tests.attack.http.attacks import ATTACKS, PIECE
from tests.attack.http.readers import MEDIAN_SECONDS_MAX, MEMORY_BYTES_MAX, Noticed, attacked
from tests.service.conftest import Served, running

# How each attack ends for the attacker; the readers see nothing of it
ENDS = {
    "cookies to unquote": {"200"},
    "headers to parse": {"200", "206", "304", "400", "401", "404", "416", "421"},
    "an endless address": {"414", "reset"},
    "an endless header": {"431", "reset"},
    "endless headers": {"431", "reset"},
    "endless trailers": {"431", "reset"},
    "an endless body": {"413", "reset"},
    "endless chunks": {"431", "reset"},
    "pipelines": {"cut while sending", "reset", "closed", "429"},
    "half heads": {"held"},
    "silent connections": {"held"},
    "slow bodies": {"held"},
    "unread downloads": {"held"},
    "aborted requests": {"given up"},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with running(tmp_path_factory.mktemp("attacked") / "data", command="serve") as served:
        yield served
    assert "Traceback" not in served.log.read_text()


@pytest.mark.requirement("attack.http")
@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.sampled
def test_an_attack_is_not_noticed_by_others(name: str, server: Served) -> None:
    noticed = attacked(name, server.port, server.process.pid)
    assert server.process.poll() is None
    assert noticed.failures == []
    assert noticed.median < MEDIAN_SECONDS_MAX, noticed
    assert noticed.memory < MEMORY_BYTES_MAX, noticed
    assert set(noticed.seen) - {"bytes sent", "cut while sending"} <= ENDS[name], noticed
    assert_bounded(noticed)


def assert_bounded(noticed: Noticed) -> None:
    """What is poured in is taken up to the limits and a few buffers of the kernel, never to its end."""
    assert noticed.seen["bytes sent"] < 500 * PIECE
