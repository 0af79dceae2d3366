"""The answer of the parsing process about a file: everything requested, or the reason why it is refused."""

from typing import BinaryIO

from analytics.messages import pack
from connectors import formats
from connectors.bank_csv.reader import explain
from connectors.connector import LimitExceeded, SourceError, UnsupportedFile
from connectors.parser_process.messages import FileRefusal, FormatName, Packer, ParseRequest


def answer(request: ParseRequest, stream: BinaryIO, packer: Packer) -> None:
    """Add to `packer` everything that was requested of the file, and at an error, whatever it is, its refusal."""
    try:
        match request.wanted:
            case "format":
                packer.add(FormatName(name=formats.format_name(stream)))
            case "explanation":
                packer.add(explain(stream, request.profiles))
            case _:  # records
                for record in formats.read_records(stream, request.profiles, packer.add, packer.add):
                    packer.add(record)
    except SourceError as error:
        packer.add(_refusal(error))
    except MemoryError:
        packer.add(FileRefusal(kind="LimitExceeded", reason="the file takes more memory to read than allowed."))
    except Exception as error:
        packer.add(FileRefusal(kind="MalformedFile", reason="the file cannot be read.", detail=type(error).__name__))


def _refusal(error: SourceError) -> FileRefusal:
    reason, detail = pack(str(error)), error.detail
    if isinstance(error, LimitExceeded):
        return FileRefusal(kind="LimitExceeded", reason=reason, detail=detail)
    if isinstance(error, UnsupportedFile):
        return FileRefusal(kind="UnsupportedFile", reason=reason, detail=detail)
    return FileRefusal(kind="MalformedFile", reason=reason, detail=detail)
