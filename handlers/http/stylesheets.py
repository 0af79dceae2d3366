"""Stylesheets: each begins with the tokens that all pages share."""

from importlib import resources
from importlib.resources.abc import Traversable


def stylesheet(file: Traversable) -> bytes:
    """The tokens, then what the file says."""
    tokens = resources.files("handlers.http") / "static" / "tokens.css"
    return tokens.read_bytes() + file.read_bytes()
