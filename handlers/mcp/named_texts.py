"""Strangers' names in a table: a cell holds a short key, and `bank_text` beside the table maps the key to the fenced
name."""

from handlers.mcp.fence import bank_text


class NamedTexts:
    """Gives each new text a key (`m1`, `m2` and so on) and fences it once; `flags` are those of all texts together."""

    def __init__(self, letter: str) -> None:
        self._letter = letter
        self._keys: dict[str, str] = {}
        self._flags: set[str] = set()
        self.texts: dict[str, str] = {}

    @property
    def flags(self) -> list[str]:
        """The flags that any of the texts has, sorted."""
        return sorted(self._flags)

    def key(self, text: str | None) -> str | None:
        """The key of the text for its cell; None for None."""
        if text is None:
            return None
        if text not in self._keys:
            key = self._keys[text] = f"{self._letter}{len(self._keys) + 1}"
            told, remarkable = bank_text({key: text})
            self.texts.update(told)
            self._flags.update(remarkable)
        return self._keys[text]
