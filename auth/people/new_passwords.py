"""The rules for a new password: long enough, not the name, and hard to guess for somebody who knows common choices.

zxcvbn knows English words; the German ones are below.
"""

from typing import Literal

from zxcvbn_rs_py import zxcvbn

from auth.people.password_hashing import is_usable

Weakness = Literal["short", "long", "common", "name"]

LENGTH_MIN = 12
GUESSES_LOG10_MIN = 8.5  # 300 million: half a day for somebody who has the hash and tries 10^4 a second
CHARACTERS_MAX = 32  # judged; the search slows down fast with length, and more only makes a password harder

GERMAN_WORDS = (
    "passwort kennwort geheim geheimnis strenggeheim willkommen hallo bitte danke benutzer sicherheit sicher "
    "schluessel schlüssel konto bank sparkasse volksbank girokonto geld ichliebedich ich liebe dich liebling "
    "schatz schatzi maus mausi hase hasi prinzessin prinz engel freund freundin familie mutter vater mama papa "
    "schwester bruder baby glück glueck sonne sonnenschein mond stern sterne himmel blume blumen rose "
    "schmetterling sommer winter herbst frühling fruehling januar februar märz maerz april mai juni juli august "
    "september oktober november dezember montag dienstag mittwoch donnerstag freitag samstag sonntag hund katze "
    "pferd fisch vogel tiger löwe loewe adler bayern münchen muenchen borussia dortmund schalke hamburg bremen "
    "stuttgart köln koeln frankfurt leipzig berlin deutschland österreich oesterreich schweiz fussball fußball "
    "weltmeister meister haus garten schokolade kaffee bier arbeit computer internet einszweidrei abcdefg "
    "arschloch scheisse scheiße mein meine "
)


def weakness(password: str, *, user_name: str) -> Weakness | None:
    """The reason why a new password is refused, None for a good one; there are no composition rules (ASVS 5.0
    6.2.5)."""
    if len(password) < LENGTH_MIN:
        return "short"
    if not is_usable(password):
        return "long"
    if _is_name(password.casefold(), user_name.casefold()):
        return "name"
    return "common" if is_guessable(password, user_name=user_name) else None


def _is_name(password: str, name: str) -> bool:
    return len(name) >= 3 and name in password and not password.replace(name, "").strip("0123456789!?.-_ ")


def is_guessable(password: str, *, user_name: str) -> bool:
    """Whether somebody who knows the user's name and the usual words and patterns would soon guess the password."""
    estimate = zxcvbn(password[:CHARACTERS_MAX], [user_name, "bankdata", *GERMAN_WORDS.split()])
    return float(estimate.guesses_log10) < GUESSES_LOG10_MIN
