"""Currencies as bank files write them: a code of ISO 4217, a symbol, or a name, of which some name several."""

import json
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import resources

import pycountry

from connectors.bank_csv.profile import comparable
from connectors.text import currency_code

_BETWEEN = re.compile(r"[\s():;,/]+")
_CODE = re.compile(r"(?<![A-Za-z])[A-Z]{3}(?![A-Za-z])")
NONE: frozenset[str] = frozenset()


@lru_cache(maxsize=4096)
def currencies_called(text: str) -> frozenset[str]:
    """The codes of the currencies that a whole text may mean: one for a code, a clear symbol or a name, several for
    "$", "¥" or "kr.", none for anything else."""
    if code := currency_code(text):
        return frozenset({code})
    return _names().get(comparable(text), NONE)


def one_currency(text: str) -> str | None:
    """The code of the only currency that a whole text may mean; None for none and for several."""
    called = currencies_called(text)
    return next(iter(called)) if len(called) == 1 else None


def currency_in(text: str) -> str | None:
    """The first currency that a text of several words names by its code, else the only one that its words may mean;
    None where there is none."""
    codes = filter(None, map(currency_code, _CODE.findall(text)))
    return next(codes, None) or next(filter(None, map(one_currency, (text, *_BETWEEN.split(text)))), None)


@cache
def _names() -> Mapping[str, frozenset[str]]:
    written = json.loads((resources.files("connectors.bank_csv") / "currencies.json").read_text("utf-8"))
    listed = {comparable(each.name): frozenset({each.alpha_3}) for each in pycountry.currencies}
    return {**listed, **{comparable(name): frozenset(codes.split()) for name, codes in written.items()}}
