"""Loads stylesheets; each begins with the design tokens that all pages share."""

from importlib import resources
from importlib.resources.abc import Traversable


def stylesheet(file: Traversable) -> bytes:
    """The content of the stylesheet, with the shared tokens before it."""
    tokens = resources.files("handlers.http") / "static" / "tokens.css"
    return tokens.read_bytes() + file.read_bytes()
