"""Answers in the syntax of FinTS 3.0, written by hand, segment by segment."""

from decimal import Decimal
from typing import Any

from tests.simulators.fints_bank.accounts import BANK_CODE


class Answer:
    """The segments of one answer, numbered as they are added; they refer to those of the request."""

    def __init__(self, *, dialog: str, number: int) -> None:
        self.dialog, self.number = dialog, number
        self._whole = ["0010::Nachricht entgegengenommen."]
        self._segments: list[tuple[str, int, int, str]] = []

    def refuse(self, code: str, text: str) -> None:
        self._whole = [f"{code}::{text}"]

    def segment(self, order: Any, code: str, text: str, *parameters: str) -> None:
        said = ":".join((code, "", quoted(text), *parameters))
        self._segments.append(("HIRMS", 2, order.header.number, said))

    def add(self, name: str, version: int, order: Any, data: str) -> None:
        self._segments.append((name, version, order.header.number, data))

    def message(self) -> bytes:
        inner = f"HIRMG:2:2+{'+'.join(self._whole)}'" + "".join(
            f"{name}:{place}:{version}:{refers}+{data}'"
            for place, (name, version, refers, data) in enumerate(self._segments, 3)
        )
        end = f"HNHBS:{len(self._segments) + 3}:1+{self.number}'"
        envelope = (
            f"HNVSK:998:3+PIN:1+998+1+2::0+1:20261120:120000+2:2:13:@8@00000000:5:1+280:{BANK_CODE}:bank:V:0:0+0'"
            f"HNVSD:999:1+@{len(inner.encode('latin-1'))}@{inner}'"
        )
        rest = f"+300+{self.dialog}+{self.number}+{self.dialog}:{self.number}'{envelope}{end}"
        size = len("HNHBK:1:3+") + 12 + len(rest.encode("latin-1"))
        return f"HNHBK:1:3+{size:012d}{rest}".encode("latin-1")


def quoted(text: str) -> str:
    for mark in "?+:'@":
        text = text.replace(mark, f"?{mark}")
    return text


def binary(data: bytes) -> str:
    return f"@{len(data)}@{data.decode('latin-1')}"


def value(amount: Decimal) -> str:
    """FinTS: a decimal comma always, and no zeros after the last digit."""
    return f"{amount:.2f}".rstrip("0").replace(".", ",")
