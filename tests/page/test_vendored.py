"""The libraries of the page are those that npm publishes, named by version, license and hash."""

import hashlib

import pytest

from tests.page.vendored import FOLDER, Different, Library, fetched, libraries


@pytest.mark.requirement("page.vendored")
@pytest.mark.parametrize("library", libraries(), ids=lambda library: str(library["name"]))
@pytest.mark.sampled
def test_what_lies_here_is_what_npm_publishes(library: Library) -> None:
    published = fetched(library)
    assert {name: (FOLDER / name).read_bytes() for name in published} == published
    assert {name: hashlib.sha256(content).hexdigest() for name, content in published.items()} == library["sha256"]


@pytest.mark.requirement("page.vendored")
def test_nothing_else_lies_there() -> None:
    named = {name for library in libraries() for name in library["files"].values()}
    assert {path.name for path in FOLDER.iterdir()} == named | {"lock.json"}


@pytest.mark.requirement("page.vendored")
@pytest.mark.long
def test_another_archive_than_the_one_in_the_lock_is_refused() -> None:
    (library, *_) = libraries()
    with pytest.raises(Different):
        fetched({**library, "integrity": "sha512-other"})
