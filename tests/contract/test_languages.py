"""Sentences leave in the language that a client prefers; what the interface fixes stays English."""

import copy
import pickle
from datetime import date

import pytest

from analytics.messages import Message, Word, pack, sentence, unpack
from handlers.languages import catalogue, preferred
from handlers.web.call import in_language
from handlers.web.request import Answer

GONE = Message("{name}: {reason}", name="Giro", reason=Message("Account not found"))
MISSING = Message(
    "Transactions from {first} to {last} are missing. Import a statement of these days.",
    first=date(2026, 3, 4),
    last=date(2026, 5, 1),
)


@pytest.mark.requirement("languages.accept")
def test_who_prefers_german_is_answered_in_german() -> None:
    answer = in_language(Answer(body={"error": GONE}, status=404), "de")
    assert answer.body == b'{"error":"Giro: Dieses Konto gibt es nicht (mehr)"}'
    assert answer.headers == {"content-language": "de", "vary": "accept-language"}


@pytest.mark.requirement("languages.accept")
@pytest.mark.parametrize("language", ["en", "de"])
def test_what_no_catalogue_knows_is_the_same_for_everybody(language: str) -> None:
    answer = in_language(Answer(body={"error": Message("Unauthorized"), "name": "Account not found"}), language)
    assert answer.body == b'{"error":"Unauthorized","name":"Account not found"}'
    assert answer.headers == {}


@pytest.mark.requirement("languages.accept")
@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"),
        ("de", "de"),
        ("DE-at,en;q=0.5", "de"),
        ("de;q=0.4, en;q=0.5", "en"),
        ("de;q=0", "en"),
        ("pt, de;q=0.1", "de"),
        ("*", "en"),
        ("de;q=x", "en"),
    ],
)
def test_the_language_with_the_greatest_weight_is_spoken(accepted: str, language: str) -> None:
    assert preferred(accepted) == language


@pytest.mark.requirement("languages.accept")
def test_days_codes_and_lists_are_said_in_the_language() -> None:
    german = catalogue("de").said
    assert str(MISSING) == "Transactions from 4 March 2026 to 1 May 2026 are missing. Import a statement of these days."
    assert german(MISSING) == (
        "Es fehlen Buchungen vom 4. März 2026 bis 1. Mai 2026. Importieren Sie einen Auszug dieser Tage."
    )
    rule = Message("Your rule {id} says so: {field} is “{value}”.", id="1", field=Word("merchantName"), value="text")
    assert str(rule) == "Your rule 1 says so: merchant name is “text”."
    assert german(rule) == "Ihre Regel 1 besagt es: Händler ist „text“."
    doubt = Message("{question} {words}", question=[Message("Account not found")] * 2, words=7)
    assert german(doubt) == "Dieses Konto gibt es nicht (mehr), Dieses Konto gibt es nicht (mehr) 7"


@pytest.mark.requirement("languages.accept")
def test_what_a_person_or_a_bank_wrote_is_never_translated() -> None:
    named = Message("{name}: {reason}", name="Account not found", reason=Message("Rule not found"))
    assert catalogue("de").said(named) == "Account not found: Diese Regel gibt es nicht (mehr)"
    braces = Message("There is no folder {path}.", path="{name}: {0}")
    assert str(braces) == "There is no folder {name}: {0}."
    assert catalogue("de").said(braces) == "Den Ordner {name}: {0} gibt es nicht."
    told_by_a_reader = Message("{a:>1000000000} {a.__class__} {a[0]}", a="x")  # no place but names in braces is filled
    assert str(told_by_a_reader) == "{a:>1000000000} {a.__class__} {a[0]}"
    colons = Message("There is no folder {path}.", path=": " * 5000)
    assert catalogue("de").said(colons) == f"Den Ordner {': ' * 5000} gibt es nicht."


@pytest.mark.requirement("languages.stored")
@pytest.mark.parametrize("text", [GONE, MISSING, Message("a {b"), Message("{x}", x=[Word("fee"), 3])])
def test_a_stored_sentence_keeps_what_it_is_made_of(text: Message) -> None:
    for again in (unpack(pack(text)), copy.deepcopy(text), pickle.loads(pickle.dumps(text))):
        assert (again, again.template, again.arguments) == (text, text.template, text.arguments)


@pytest.mark.requirement("languages.stored")
def test_a_sentence_that_a_former_version_stored_is_translated_if_it_has_no_places() -> None:
    assert catalogue("de").said(unpack("The bank could not be reached.")) == "Die Bank war nicht erreichbar."
    assert catalogue("de").said(unpack("bank.example broke off.")) is None


@pytest.mark.requirement("languages.accept")
def test_a_reason_becomes_a_sentence_in_every_language() -> None:
    reason = sentence(Message("line {line}: the booking date cannot be read", line=4))
    assert reason == "Line 4: the booking date cannot be read."
    assert catalogue("de").said(reason) == "Zeile 4: Der Buchungstag ist nicht lesbar."
