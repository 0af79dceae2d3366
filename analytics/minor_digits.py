"""The digits that amounts of each currency have after the point (ISO 4217)."""

from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache

MINOR_DIGITS_USUAL = 2
MINOR_DIGITS = {  # ISO 4217 list one: the currencies whose minor unit is not a hundredth
    **{"BIF": 0, "CLP": 0, "DJF": 0, "GNF": 0, "ISK": 0, "JPY": 0, "KMF": 0, "KRW": 0, "PYG": 0, "RWF": 0},
    **{"UGX": 0, "UYI": 0, "VND": 0, "VUV": 0, "XAF": 0, "XOF": 0, "XPF": 0},
    **{"BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3},
    **{"CLF": 4, "UYW": 4},
}


def minor_digits(currency: str) -> int:
    """The number of digits after the point in this currency (ISO 4217)."""
    return MINOR_DIGITS.get(currency, MINOR_DIGITS_USUAL)


def in_digits(amount: Decimal, currency: str) -> Decimal:
    """The amount rounded half to even to the digits of its currency, as it is listed; some banks state five."""
    return amount.quantize(_step(currency), rounding=ROUND_HALF_EVEN)


@lru_cache(maxsize=100)
def _step(currency: str) -> Decimal:
    return Decimal(1).scaleb(-minor_digits(currency))
