"""ZIP containers of statements: every member is read as a stream, within limits, and its name is never used."""

import io
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from connectors.connector import LimitExceeded, MalformedFile, UnsupportedFile
from connectors.limits import (
    HEAD_BYTES,
    ZIP_LISTING_BYTES_MAX,
    ZIP_MEMBER_BYTES_MAX,
    ZIP_MEMBERS_MAX,
    ZIP_RATIO_FREE_BYTES,
    ZIP_RATIO_MAX,
    ZIP_TOTAL_BYTES_MAX,
)

DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError)
"""The exceptions of zipfile for a container that cannot be opened or read: RuntimeError for a password and, as its
subclass NotImplementedError, for an unknown version or compression; zlib.error and EOFError for a damaged stream;
ValueError for a name that is no text or an offset outside the file."""

COMPANIONS = (b"%PDF-", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"II*\x00", b"MM\x00*")
"""The first bytes of what banks put beside their statements: PDF, PNG, JPEG, GIF and TIFF."""

_SYSTEM_FILES = {"thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r"}
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
_ENDS = (
    (b"PK\x05\x06", 12, 16),
    (b"PK\x06\x06", 40, 48),
)
"""The signatures of the end of the listing and of its ZIP64 form, which goes before it and counts in its place (APPNOTE
4.3.16 and 4.3.14), each with where it states the length of the listing."""
_END_BYTES_MAX = 56 + 20 + 22 + 65_535  # the ZIP64 form, what says where it is, and the end with its comment


def detect(head: bytes) -> bool:
    """Whether the file is a ZIP container, an empty one included."""
    return head[:4] in (b"PK\x03\x04", b"PK\x05\x06")


def is_of_the_system(path: str) -> bool:
    """Whether a file is what macOS or Windows keeps beside the files of a folder, by its path: nobody means it to be
    read."""
    *folders, name = path.replace("\\", "/").split("/")
    return name.startswith(".") or name.lower() in _SYSTEM_FILES or "__MACOSX" in folders


def statements(stream: BinaryIO) -> Iterator[tuple[int, BinaryIO]]:
    """The files in the container in its order, but for PDFs and images (COMPANIONS), folders and what the system adds,
    each with its number and readable until the next one is requested. Numbers begin at 1 and count the PDFs and images,
    too.

    Raises `LimitExceeded` for too many, too large, or too well compressed files, `UnsupportedFile` for
    encrypted or unusually compressed ones, `MalformedFile` for damage; all of them also while a file is being read.
    """
    _refuse_long_listing(stream)
    try:
        container = zipfile.ZipFile(stream)
    except DAMAGED:
        raise MalformedFile("the ZIP container is damaged or cut off.") from None
    with container:
        names = [(info, info.filename) for info in container.infolist()]  # may be empty, which is_dir() does not expect
        files = [info for info, name in names if not name.endswith("/") and not is_of_the_system(name)]
        if len(files) > ZIP_MEMBERS_MAX:
            raise LimitExceeded("more than {limit} files in the ZIP container.", limit=ZIP_MEMBERS_MAX)
        if sum(info.file_size for info in files) > ZIP_TOTAL_BYTES_MAX:
            raise LimitExceeded("the ZIP container holds more than is allowed.")
        if len({info.header_offset for info in files}) < len(files):
            raise MalformedFile("the ZIP container lists the same content twice.")
        total = 0
        for number, info in enumerate(files, start=1):
            if info.flag_bits & _ENCRYPTED or info.compress_type not in _METHODS:
                raise UnsupportedFile(
                    "file {file} of the ZIP container is encrypted or packed in an unusual way.", file=number
                )
            member = _Member(container, info, number, total)
            with io.BufferedReader(member, buffer_size=HEAD_BYTES) as reader:
                if not reader.peek(HEAD_BYTES).startswith(COMPANIONS):
                    yield number, reader
            total += member.count


def _refuse_long_listing(stream: BinaryIO) -> None:
    """Raise LimitExceeded for a container with too long a listing, else leave the stream at its beginning. It is called
    before `zipfile`, which would load millions of entries before their number could be checked."""
    end = stream.seek(0, io.SEEK_END)
    stream.seek(max(0, end - _END_BYTES_MAX))
    tail = stream.read()
    stream.seek(0)
    for signature, begin, end_of_length in _ENDS:
        place = tail.find(signature)
        while place >= 0:  # each place that may be the end
            length = int.from_bytes(tail[place + begin : place + end_of_length], "little")
            if length > ZIP_LISTING_BYTES_MAX:
                raise LimitExceeded("more than {limit} files in the ZIP container.", limit=ZIP_MEMBERS_MAX)
            place = tail.find(signature, place + 1)


class _Member(io.RawIOBase):
    """One file of the container, with its limits enforced while reading, whatever sizes the container states."""

    def __init__(self, container: zipfile.ZipFile, info: zipfile.ZipInfo, number: int, total: int) -> None:
        super().__init__()
        self._number = number
        self._total = total
        self._packed = max(info.compress_size, 1)
        self.count = 0
        try:
            self._stream = container.open(info)
        except DAMAGED:
            raise self._damage() from None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # typeshed: any writable buffer
        try:
            chunk = self._stream.read(len(buffer))
        except DAMAGED:
            raise self._damage() from None
        self.count += len(chunk)
        if self.count > ZIP_MEMBER_BYTES_MAX or self._total + self.count > ZIP_TOTAL_BYTES_MAX:
            raise LimitExceeded("file {file} of the ZIP container is larger than allowed.", file=self._number)
        if self.count > ZIP_RATIO_FREE_BYTES and self.count > ZIP_RATIO_MAX * self._packed:
            raise LimitExceeded(
                "file {file} of the ZIP container is packed more than {limit} to 1.",
                file=self._number,
                limit=ZIP_RATIO_MAX,
            )
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def close(self) -> None:
        if not self.closed and hasattr(self, "_stream"):
            self._stream.close()
        super().close()

    def _damage(self) -> MalformedFile:
        return MalformedFile("file {file} of the ZIP container is damaged.", file=self._number)
