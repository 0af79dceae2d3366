"""The texts of a camt element by path, with local names only, for the readers of statements and entries."""

from collections.abc import Iterable
from functools import lru_cache
from operator import attrgetter

from lxml import etree

from connectors.connector import LimitExceeded
from connectors.limits import XML_TAG_CHARACTERS_MAX

_tag_of = attrgetter("tag")
_DETAIL = "TxDtls"
_TELLING = frozenset(
    {"RtrInf", "CardTx", "AmtDtls", "BkTxCd", "RltdAgts"}
)  # their presence alone matters; without them, look-ups are skipped
_SKIPPED = frozenset({"PstlAdr", "CtctDtls", "Tax", "TaxRmt", "GrnshmtRmt", "RltdRmtInf", "SplmtryData"})
_SHAPES_MAX = 500  # a bank writes a few dozen; a hostile file gets no more of our memory
_SHAPE_NODES_MAX = 128
_PATH_CHARACTERS_MAX = 200  # the longest that is looked up has 60


class Texts(dict[str, str]):
    """The first text at each path below an element; the currency of an amount is at "../@Ccy"."""

    repeated: dict[str, list[str]] | None = None  # the further texts at a path; most entries have none

    def all(self, path: str) -> list[str]:
        """Every text at the path, in order."""
        first = self.get(path)
        if first is None:
            return []
        return [first, *(self.repeated or {}).get(path, ())]

    def add(self, path: str, written: str) -> None:
        """Add a text at a path that may already have one."""
        if path not in self:
            self[path] = written
            return
        if self.repeated is None:
            self.repeated = {}
        self.repeated.setdefault(path, []).append(written)


def text(texts: Texts, *paths: str) -> str | None:
    """The first text at the first of the paths that has one, stripped; None where none has."""
    for path in paths:
        written = texts.get(path)
        if written and (written := written.strip()):
            return written
    return None


def read_entry_texts(entry: etree._Element) -> tuple[Texts, list[Texts]]:
    """The texts of an entry, and separately those of each of its details (TxDtls), which are removed from the tree if
    the entry is large."""
    details: list[Texts] = []
    nodes = list(entry.iterdescendants())
    if len(nodes) > _SHAPE_NODES_MAX:  # a batch: each detail has a shape of its own
        nodes.clear()  # lxml takes long to clear elements that are still referenced
        for detail in entry.iter(f"{{*}}{_DETAIL}"):
            if len(detail):
                details.append(read_texts(detail))
                detail.clear()
        nodes = list(entry.iterdescendants())
    parts = _shape(nodes, "").parts
    return _texts(parts[0], nodes), details or [_texts(part, nodes) for part in parts[1:]]


def read_texts(element: etree._Element, *, below: str = "") -> Texts:
    """The texts below an element by path; each path begins with `below`."""
    nodes = list(element.iterdescendants())
    return _texts(_shape(nodes, below).parts[0], nodes)


def _texts(part: "_Part", nodes: list[etree._Element]) -> Texts:
    texts = Texts(part.told)
    if part.is_plain:
        for path, place in part.leaves:
            if written := nodes[place].text:
                texts[path] = written
    else:
        for path, place in part.leaves:
            if written := nodes[place].text:
                texts.add(path, written)
    for path, place in part.amounts:
        if nodes[place].text:
            texts.setdefault(path, nodes[place].get("Ccy", ""))
    return texts


def _shape(nodes: list[etree._Element], below: str) -> "_Shape":
    if len(nodes) > _SHAPE_NODES_MAX:
        return _Shape(map(_tag_of, nodes), map(len, nodes), below)
    return _known_shape(tuple(map(_tag_of, nodes)), tuple(map(len, nodes)), below)


class _Part:
    """The places of the texts that belong together: those of an entry itself, or of one of its details."""

    __slots__ = ("amounts", "is_plain", "leaves", "told")

    def __init__(self) -> None:
        self.leaves: list[tuple[str, int]] = []
        self.amounts: list[tuple[str, int]] = []
        self.told: dict[str, str] = {}
        self.is_plain = True

    def add(self, path: str, name: str, place: int) -> None:
        """Add the place of a text, and for an amount that of its currency."""
        self.leaves.append((path, place))
        if name == "Amt":
            self.amounts.append((f"{path}/@Ccy", place))


class _Shape:
    """The places of texts in a tree, determined by tags and numbers of children.

    Shapes repeat from entry to entry, so paths are built once for each shape and not for each entry. Raises
    `LimitExceeded` for a tag longer than any bank writes.
    """

    __slots__ = ("parts",)

    def __init__(self, tags: Iterable[str], sizes: Iterable[int], below: str) -> None:
        part = _Part()
        self.parts = [part]
        above: list[tuple[str | None, _Part]] = []  # the path above each node still to come, the nearest last
        for place, (tag, size) in enumerate(zip(tags, sizes, strict=True)):
            parent, part = above.pop() if above else (below, self.parts[0])
            if len(tag) > XML_TAG_CHARACTERS_MAX:
                raise LimitExceeded(
                    "a name of more than {limit} characters, namespace included.", limit=XML_TAG_CHARACTERS_MAX
                )
            name = local_name(tag)
            path = None if parent is None else f"{parent}/{name}" if parent else name
            if path is None or len(path) > _PATH_CHARACTERS_MAX or (size and name in _SKIPPED):
                above += [(None, part)] * size
            elif not size:
                part.add(path, name, place)
            elif name == _DETAIL:
                self.parts.append(_Part())
                above += [("", self.parts[-1])] * size
            else:
                if name in _TELLING:
                    part.told[path] = "present"
                above += [(path, part)] * size
        for part in self.parts:
            part.is_plain = len(dict(part.leaves)) == len(part.leaves)


_known_shape = lru_cache(maxsize=_SHAPES_MAX)(_Shape)


def local_name(tag: str) -> str:
    """A tag without its namespace."""
    return tag.rpartition("}")[2]
