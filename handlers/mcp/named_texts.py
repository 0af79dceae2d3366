"""Strangers' names in a table: a cell holds a short key, and `bank_text` beside the table says what it stands for."""

from handlers.mcp.fence import bank_text


class NamedTexts:
    """Texts by keys that are given as they come, `m1`, `m2` and so on, each fenced once; `flags` are those of any."""

    def __init__(self, letter: str) -> None:
        self._letter = letter
        self._keys: dict[str, str] = {}
        self._flags: set[str] = set()
        self.texts: dict[str, str] = {}

    @property
    def flags(self) -> list[str]:
        """What is remarkable about any of the texts."""
        return sorted(self._flags)

    def key(self, text: str | None) -> str | None:
        """What stands for the text in a cell."""
        if text is None:
            return None
        if text not in self._keys:
            key = self._keys[text] = f"{self._letter}{len(self._keys) + 1}"
            told, remarkable = bank_text({key: text})
            self.texts.update(told)
            self._flags.update(remarkable)
        return self._keys[text]
