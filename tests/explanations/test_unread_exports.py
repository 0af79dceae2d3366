"""Exports that wait for their readers: so many files, so many bytes, and no more."""

from collections.abc import Callable
from io import BufferedReader
from typing import BinaryIO

import pytest

from handlers.work import unread_exports
from handlers.work.unread_exports import FILES_MAX, PER_USER_MAX, TooManyExports, UnreadExports

pytestmark = pytest.mark.requirement("export.waiting")


def of(size: int) -> Callable[[BinaryIO], object]:
    return lambda file: file.write(b"x" * size)


def close(unread: list[BufferedReader]) -> None:
    for file in unread:
        file.close()


@pytest.fixture
def files() -> UnreadExports:
    return UnreadExports()


def test_one_user_has_four_unread_and_gets_another_when_one_is_read(files: UnreadExports) -> None:
    unread = [files.write("eva", of(1)) for _ in range(PER_USER_MAX)]
    with pytest.raises(TooManyExports):
        files.write("eva", of(1))
    unread.append(files.write("jan", of(1)))
    assert unread[-1].read() == b"x"
    unread.pop(0).close()
    with files.write("eva", of(3)) as file:
        assert file.read() == b"xxx"
    close(unread)


def test_all_users_together_have_sixteen(files: UnreadExports) -> None:
    unread = [files.write(f"user {number}", of(1)) for number in range(FILES_MAX)]
    with pytest.raises(TooManyExports):
        files.write("another", of(1))
    unread.pop().close()
    unread.append(files.write("another", of(1)))
    close(unread)


def test_a_file_that_nobody_holds_any_more_counts_no_longer(files: UnreadExports) -> None:
    for _ in range(PER_USER_MAX + 1):
        with pytest.warns(ResourceWarning):
            files.write("eva", of(1))  # whoever asked is gone


def test_together_they_are_no_larger_than_allowed_and_one_alone_may_be(
    files: UnreadExports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unread_exports, "BYTES_MAX", 10)
    unread = [files.write("eva", of(5)), files.write("jan", of(4))]
    with pytest.raises(TooManyExports):
        files.write("eva", of(2))
    unread.append(files.write("eva", of(1)))
    with pytest.raises(TooManyExports):
        files.write("jan", never)
    close(unread)
    with files.write("eva", of(11)) as alone:
        assert len(alone.read()) == 11
        with pytest.raises(TooManyExports):
            files.write("jan", never)
    close([files.write("jan", of(1))])


def never(_file: BinaryIO) -> None:
    pytest.fail("nothing is written that nobody may have")


def test_an_export_that_fails_takes_nobodys_place(files: UnreadExports) -> None:
    def broken(_file: BinaryIO) -> None:
        raise OSError("no space left on the device")

    for _ in range(PER_USER_MAX + 1):
        with pytest.raises(OSError, match="no space left"):
            files.write("eva", broken)
    close([files.write("eva", of(1))])
