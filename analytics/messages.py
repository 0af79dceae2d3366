"""Sentences of the service. Each is a template of the catalogues (`handlers/words`) and what stands in its places; its
text is English until it leaves in another language."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, Self

from analytics.minor_digits import minor_digits

_PLACE = re.compile(r"\{(\w+)\}")
_BOUNDARY = re.compile("_|(?<=[a-z])(?=[A-Z])")  # between the words of a code


class Word(str):
    """A code of the interface that stands in a sentence, such as a type of booking: in English it is written as
    words, in other languages as their catalogues name it."""

    __slots__ = ()

    @property
    def english(self) -> str:
        """The code as English words: `direct_debit` is "direct debit", `counterpartName` "counterpart name"."""
        return _BOUNDARY.sub(" ", self).lower().replace("iban", "IBAN")


class Amount(str):
    """An amount of money with its currency as English sentences write it: `-1,250.00 EUR`. Other languages have marks
    of their own."""

    __slots__ = ()

    @classmethod
    def of(cls, amount: Decimal, currency: str) -> Self:
        """The amount in the digits of its currency."""
        return cls(f"{amount.quantize(Decimal(1).scaleb(-minor_digits(currency))):,f} {currency}")


class Message(str):
    """A sentence: its English text as a string, with the `template` by which catalogues know it and the `arguments` for
    the template's places. Arguments are texts, numbers, amounts (`Amount`), days, codes
    (`Word`), other messages, and lists of these.

    Whatever makes a new string of it, such as an f-string, keeps the English text alone.
    """

    template: str
    arguments: Mapping[str, Any]

    def __new__(cls, template: str, /, **arguments: Any) -> Self:
        """Raises KeyError for a place without an argument."""
        made = super().__new__(cls, filled(template, arguments, _in_english) if arguments else template)
        made.template, made.arguments = template, arguments
        return made

    def __str__(self) -> str:
        """Itself, so that the text of an exception is still a message."""
        return self


class Saying(Exception):
    """An exception whose text is a message, made of a template and its arguments."""

    def __init__(self, template: str = "", /, **arguments: Any) -> None:
        super().__init__(Message(template, **arguments) if arguments else message(template))


def filled(template: str, arguments: Mapping[str, Any], written: Callable[[Any], str]) -> str:
    """The template with its arguments, each as `written` puts it; a message without arguments is taken as it stands.
    Places are names in braces and nothing else: a template may come from a process that reads strangers' files."""
    return _PLACE.sub(lambda place: written(arguments[place[1]]), template) if arguments else template


def message(text: str) -> Message:
    """The text as a message: itself if it is one, else the sentence without places that it is."""
    return text if isinstance(text, Message) else Message(text)


def sentence(text: str) -> Message:
    """The text as a sentence for people: with a capital letter, and a full stop unless it ends with a mark."""
    known = message(text)
    template = known.template[:1].upper() + known.template[1:]
    ends = known.endswith((".", "!", "?"))
    return Message(template if ends else f"{template}.", **known.arguments)


def pack(text: str) -> str:
    """The text for the store: of a message its template and arguments, as JSON; any other text as it is."""
    is_made = isinstance(text, Message) and bool(text.arguments)
    return json.dumps(_plain(text), ensure_ascii=False) if is_made else str.__str__(text)


def unpack(stored: str) -> Message:
    """The message that was stored by `pack`, or the sentence that a former version stored."""
    if not stored.startswith('{"message": '):
        return Message(stored)
    made = _made(json.loads(stored))
    assert isinstance(made, Message)
    return made


def _in_english(value: Any) -> str:
    match value:
        case Word():
            return value.english
        case list():
            return ", ".join(map(_in_english, value))
        case date():
            return f"{value.day} {value:%B %Y}"
    return str(value)


def _plain(value: Any) -> Any:
    match value:
        case Message():
            said = {name: _plain(each) for name, each in value.arguments.items()}
            return {"message": value.template, "arguments": said}
        case Word() | Amount():
            return {type(value).__name__.lower(): str.__str__(value)}
        case list():
            return [_plain(each) for each in value]
        case date():
            return {"day": value.isoformat()}
    return value


def _made(value: Any) -> Any:
    match value:
        case {"message": template, "arguments": arguments}:
            return Message(template, **{name: _made(each) for name, each in arguments.items()})
        case {"word": word}:
            return Word(word)
        case {"amount": amount}:
            return Amount(amount)
        case {"day": day}:
            return date.fromisoformat(day)
        case [*several]:
            return [_made(each) for each in several]
    return value
