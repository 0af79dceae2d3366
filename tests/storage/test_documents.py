"""Documents that all processes of a store read: of several writers one wins. The sealed keys are one of them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from auth.tokens.keys import KIND, KeyRing
from storage import documents
from storage.database import Conflict, Database
from storage.keys.places import KeysUnusable, SealedKeys
from tests.conftest import NOW

NAME = f"{KIND}, sealed"


@pytest.mark.requirement("keys.sealed")
def test_without_a_secret_there_are_no_keys(database: Database) -> None:
    with pytest.raises(KeysUnusable, match="BANKDATA_KEYS_SECRET is missing"):
        SealedKeys(database, KIND, "", lambda: NOW)


@pytest.mark.requirement("keys.sealed")
def test_of_two_who_rotate_the_keys_at_once_the_second_is_told(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = SealedKeys(database, KIND, "a secret of the operator", lambda: datetime(2026, 11, 20, 12, tzinfo=UTC))
    one, other = KeyRing(place, now=NOW), KeyRing(place, now=NOW)
    replace = place.replace

    def replace_late(*arguments: Any) -> None:
        monkeypatch.setattr(place, "replace", replace)
        other.rotate(now=NOW)
        replace(*arguments)

    monkeypatch.setattr(place, "replace", replace_late)
    with pytest.raises(KeysUnusable, match="just been rotated by somebody else"):
        one.rotate(now=NOW)
    assert str(place) == "The document of oauth keys in the store"  # of which messages about damaged ones begin
    assert one.signing_key().kid == other.signing_key().kid


@pytest.mark.requirement("keys.secret_changes")
def test_the_first_secret_seals_and_each_one_opens_so_that_it_is_changed_while_servers_run(database: Database) -> None:
    def opened_with(*secrets: str) -> KeyRing:
        return KeyRing(SealedKeys(database, KIND, "\n".join(secrets), lambda: NOW), now=NOW)

    old = opened_with("old")
    both = opened_with("new", "old")
    assert both.signing_key().kid == old.signing_key().kid
    both.reseal()
    assert opened_with("new").signing_key().kid == both.signing_key().kid
    assert opened_with("other", "new").secret("codes") == both.secret("codes")
    with pytest.raises(KeysUnusable, match="does not open the keys"):
        old.signing_key()
    with pytest.raises(KeysUnusable, match="does not open the keys"):
        opened_with("old")
    documents.replace(database, NAME, "x", before=documents.find(database, NAME), now=NOW)  # no base64
    with pytest.raises(KeysUnusable, match="does not open the keys"):
        both.signing_key()


@pytest.mark.requirement("rates.update")
def test_a_document_is_replaced_by_whoever_knows_what_it_says(database: Database) -> None:
    documents.replace(database, "rates", "of Monday", before=None, now=NOW)
    with pytest.raises(Conflict):
        documents.replace(database, "rates", "of Sunday", before=None, now=NOW)
    documents.replace(database, "rates", "of Tuesday", before="of Monday", now=NOW)
    with pytest.raises(Conflict):
        documents.replace(database, "rates", "of Wednesday", before="of Monday", now=NOW)
    assert documents.find(database, "rates") == "of Tuesday"


@pytest.mark.requirement("profiles.shared")
def test_the_documents_of_a_folder_come_in_the_order_of_their_names_until_they_are_removed(database: Database) -> None:
    for name in ("shelf/b", "shelf/ä", "shelf/B", "shelf_/c", "shelf"):
        documents.add(database, name, f"content of {name}", now=NOW)
    assert list(documents.below(database, "shelf").items()) == [
        ("B", "content of shelf/B"),
        ("b", "content of shelf/b"),
        ("ä", "content of shelf/ä"),
    ]
    documents.remove(database, "shelf/b")
    documents.remove(database, "shelf/b")
    assert list(documents.below(database, "shelf")) == ["B", "ä"]
