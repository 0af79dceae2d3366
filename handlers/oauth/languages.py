"""The words of the pages that the server renders, in the languages of the catalogues, and their colours, if a person
has chosen some: the browser page keeps both choices in cookies."""

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo

from msgspec import Struct
from msgspec.structs import replace

from analytics.messages import message
from handlers import languages
from handlers.languages import ENGLISH, catalogue, preferred


class Translated(Struct, frozen=True):
    """A sentence with the language that it is written in."""

    text: str
    language: str


class Words(Struct, frozen=True):
    """The texts of one language, which templates read as `t.name` or `t.text["name"]`. `theme` is the person's choice
    of light or dark, empty where the device decides. Days and times are written in the time zone `zone`."""

    language: str
    text: Mapping[str, str]
    theme: str = ""
    zone: tzinfo = UTC

    def __call__(self, name: str, **values: object) -> str:
        """The text of this name with its placeholders filled in; raises KeyError for an unknown name."""
        return self.text[name].format(**values)

    def sentence(self, english: str) -> Translated:
        """A sentence of the service, which speaks English, in this language if it has a translation."""
        own = catalogue(self.language).said(message(english)) if self.language != ENGLISH else None
        return Translated(own, self.language) if own is not None else Translated(english, ENGLISH)

    def day(self, moment: datetime) -> str:
        """The day of a moment in words, such as 3 May 2026."""
        moment = moment.astimezone(self.zone)
        month = self.text["months"].split()[moment.month - 1]
        return self("day_written", day=moment.day, month=month, year=moment.year)

    def minute(self, moment: datetime) -> str:
        """The day of a moment in words, and its hour and minute."""
        return f"{self.day(moment)}, {moment.astimezone(self.zone):%H:%M}"

    def stamp(self, moment: datetime) -> str:
        """The moment in ISO 8601, for attributes that programs read."""
        return moment.astimezone(self.zone).isoformat()


LANGUAGE_COOKIE, THEME_COOKIE = "bds_language", "bds_theme"  # set by early.js of the browser page
THEMES = ("light", "dark")


def words_for(accept_language: str, cookies: Mapping[str, str]) -> Words:
    """The texts in the language that the person's cookie names, else in the one that the browser prefers, with the
    colours that a cookie names."""
    chosen = LANGUAGES.get(cookies.get(LANGUAGE_COOKIE, "")) or LANGUAGES[preferred(accept_language)]
    theme = cookies.get(THEME_COOKIE, "")
    return replace(chosen, theme=theme) if theme in THEMES else chosen


LANGUAGES = {language: Words(language, catalogue(language).named("account")) for language in languages.LANGUAGES}
