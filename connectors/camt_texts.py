"""The texts of a camt element by path, local names only: what the readers of statements and entries look at."""

from lxml import etree


class Texts(dict[str, str]):
    """The first text at each path below an element; an amount's currency at "../@Ccy"."""

    repeated: dict[str, list[str]] | None = None  # the further texts at a path; most entries have none

    def all(self, path: str) -> list[str]:
        """Every text at the path, in order."""
        found = self.get(path)
        if found is None:
            return []
        return [found, *(self.repeated or {}).get(path, ())]

    def add(self, path: str, written: str) -> None:
        """A further text at a path that has one."""
        if self.repeated is None:
            self.repeated = {}
        self.repeated.setdefault(path, []).append(written)


def text(texts: Texts, *paths: str) -> str | None:
    """The first text at the first of the paths that has one."""
    for path in paths:
        found = texts.get(path)
        if found and (found := found.strip()):
            return found
    return None


def flatten(element: etree._Element, texts: Texts, details: list[Texts], *, below: str = "") -> None:
    """Collect the texts below an element by path (local names); those of each TxDtls apart, as a detail."""
    _collect(element, texts, details, _ROOT[below] if below else _ROOT)


def _collect(element: etree._Element, texts: Texts, details: list[Texts], places: "_Place") -> None:
    for child in element:
        place = places[child.tag]
        if not len(child):
            written = child.text
            if written:
                path = place.path
                if path in texts:
                    texts.add(path, written)
                else:
                    texts[path] = written
                    if place.is_amount:
                        texts[place.currency_path] = child.get("Ccy", "")
        elif not place.is_special:
            _collect(child, texts, details, place)
        elif place.is_detail:
            detail = Texts()
            _collect(child, detail, details, _ROOT)
            details.append(detail)
        elif place.is_telling:
            texts[place.path] = "present"
            _collect(child, texts, details, place)


class _Place(dict[object, "_Place"]):
    """A path and, by tag, the places below it: saves a million times joining the same names."""

    __slots__ = ("currency_path", "is_amount", "is_detail", "is_special", "is_telling", "path")
    known = 0

    def __init__(self, path: str, name: str) -> None:
        super().__init__()
        self.path = path
        self.currency_path = f"{path}/@Ccy"
        self.is_amount = name == "Amt"
        self.is_detail = name == "TxDtls"
        self.is_telling = name in _TELLING
        self.is_special = self.is_detail or self.is_telling or name in _SKIPPED

    def __missing__(self, tag: object) -> "_Place":
        name = tag.rpartition("}")[2] if isinstance(tag, str) else "&"  # an entity reference that was not resolved
        place = _Place(f"{self.path}/{name}" if self.path else name, name)
        if _Place.known < _PLACES_MAX:
            _Place.known += 1
            self[tag] = place
        return place


_PLACES_MAX = 20_000  # ISO 20022 has some thousands; a hostile file gets no more of our memory
_TELLING = frozenset(
    {"RtrInf", "CardTx", "AmtDtls", "BkTxCd"}
)  # being there says something, and nothing need be looked up else
_SKIPPED = frozenset({"PstlAdr", "CtctDtls", "Tax", "TaxRmt", "GrnshmtRmt", "RltdRmtInf", "SplmtryData"})
_ROOT = _Place("", "")


def local_name(tag: object) -> str:
    """A tag without its namespace."""
    return tag.rpartition("}")[2] if isinstance(tag, str) else "&"
