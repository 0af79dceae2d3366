"""Statements as an attacker, a bad disk or a bad program leaves them: each a function of its number alone."""

import random
from collections.abc import Callable, Mapping

LENGTH_MAX = 200_000
WORDS = (
    b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\r", b"\n", b"\t", b'"', b";", b",", b"'",
    b"<", b">", b"&", b"<!--",
    b"<![CDATA[", b"]]>", b"<!DOCTYPE x [", b"&#0;", b"&#x110000;", b"<OFX>", b"</STMTTRN>",
    b"{4:", b"-}", b":61:", b":86:",
    b":20:", b"?20", b"@@", b"NaN", b"1e999", b"-0", b"99999999999999999999", b"20260231", b"9999-12-31", b"0000-00-00",
    b"EUR", b"eur", b"\xe2\x80\xae", b"\xed\xa0\x80", b"PK\x03\x04", b"PAR1", b"{", b"[", b"\\",
    b"\\u0000", b"=1+1", b" " * 40,
)  # fmt: skip


def mutant(number: int, seeds: Mapping[str, bytes]) -> tuple[str, bytes]:
    """The name of the seed, and what became of it."""
    chance = random.Random(number)
    name = chance.choice(sorted(seeds))
    content = bytearray(seeds[name])
    for _ in range(chance.choice((1, 1, 2, 3, 8))):
        chance.choice(_WAYS)(content, chance)
        if not content:
            break
    if chance.random() < 0.1:
        other = seeds[chance.choice(sorted(seeds))]
        content += other[chance.randrange(len(other)) :]
    return name, bytes(content[:LENGTH_MAX])


def _flipped(content: bytearray, chance: random.Random) -> None:
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)


def _set(content: bytearray, chance: random.Random) -> None:
    content[chance.randrange(len(content))] = chance.randrange(256)


def _cut(content: bytearray, chance: random.Random) -> None:
    del content[chance.randrange(len(content)) :]


def _left_out(content: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(content))
    del content[start : start + chance.choice((1, 2, 10, 100))]


def _repeated(content: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(content))
    part = content[start : start + chance.choice((1, 3, 20, 200))]
    content[start:start] = part * min(chance.choice((1, 2, 50, 5_000)), LENGTH_MAX // len(part))


def _moved(content: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(content))
    part = content[start : start + 50]
    del content[start : start + 50]
    place = chance.randrange(len(content) + 1)
    content[place:place] = part


def _said(content: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(content))
    content[place : place + chance.choice((0, 0, 3))] = chance.choice(WORDS) * chance.choice((1, 1, 1, 300))


def _digits(content: bytearray, chance: random.Random) -> None:
    places = [place for place, byte in enumerate(content) if 48 <= byte < 58]
    for place in chance.sample(places, min(len(places), 3)):
        content[place] = chance.choice(b"0189,.- X")


_WAYS: tuple[Callable[[bytearray, random.Random], None], ...] = (
    _flipped, _set, _cut, _left_out, _repeated, _moved, _said, _said, _digits, _digits,
)  # fmt: skip
