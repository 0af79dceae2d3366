"""Recognition of the profile that a CSV file follows, by its header row or by the shape of its rows."""

import codecs
import csv
import re
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from connectors.bank_csv.cell_kinds import fits, is_booking
from connectors.bank_csv.column_places import place_of
from connectors.bank_csv.encodings import likeliest_encoding
from connectors.bank_csv.guessing import Undecided, generic_profile, generic_shape
from connectors.bank_csv.profile import Profile, comparable
from connectors.bank_csv.vocabulary import column_field
from connectors.bank_csv.whose_account import whose_account
from connectors.connector import LimitExceeded, MalformedFile, UnsupportedFile
from connectors.limits import COLUMNS_MAX
from connectors.lines import Lines, utf16_codec, visible

HEADER_ROWS_MAX = 120  # bunq and mBank write some forty lines before the table
_DELIMITERS = (";", ",", "\t", "|")
_SHAPE_ROWS = 5
_WORD = re.compile(r"[^\W\d_]{3}")


class RecognisedFile(Struct, frozen=True, kw_only=True):
    """How one file is to be read: its profile and notation, and why. `names` are those of its columns, empty without a
    header; `preamble` are the rows above the table, `sample` is its beginning, and `header_row` is the index of the row
    right above the bookings, a header or not, -1 for none."""

    profile: Profile
    delimiter: str
    encoding: str
    names: tuple[str, ...]  # of the columns, as written; empty for files without a header
    header_row: int  # index of the row right above the bookings, a header or not; -1 for none
    preamble: tuple[tuple[str, ...], ...] = ()
    sample: tuple[tuple[str, ...], ...] = ()
    why: str = ""


class Head(NamedTuple):
    """The rows at the beginning of a file, in one encoding and with one delimiter."""

    encoding: str
    delimiter: str
    rows: list[tuple[str, ...]]

    def file(self, profile: Profile, why: str, *, begin: int, names: tuple[str, ...] = ()) -> RecognisedFile:
        """How to read this file by a profile: `begin` is the index of the first row of the table, and `names` are the
        cells of the header right above it, empty where there is none. The rows above the header become the preamble,
        those from `begin` on the sample. A profile's own encoding, if it is not cp1252, replaces the one found."""
        return RecognisedFile(
            profile=profile,
            delimiter=self.delimiter,
            encoding=profile.encoding if profile.encoding != "cp1252" else self.encoding,
            names=names,
            header_row=begin - 1,
            preamble=tuple(self.rows[: begin - 1 if names else begin]),
            sample=tuple(self.rows[begin:]),
            why=why,
        )


class UnknownLayout(UnsupportedFile):
    """A table with columns that no profile and no known word names; `file` describes it."""

    def __init__(self, message: str, file: RecognisedFile) -> None:
        super().__init__(message)
        self.file = file


def recognise(
    head: bytes, profiles: Sequence[Profile], is_suitable: Callable[[RecognisedFile], bool]
) -> RecognisedFile:
    """The profile and notation of the file that begins with `head`. Raises UnsupportedFile saying what is missing, as
    UnknownLayout where bookings are visible.

    A profile that was chosen for the file is the only one that counts, and so is one that was offered to all files of a
    ZIP container, if this one has its columns. Otherwise a profile kept by the user comes before all others; of several
    with the same names, the one with the longest header counts whose first rows `is_suitable` can read. Then come the
    shapes of rows, and guessing.
    """
    tried = [
        Head(encoding, delimiter, rows)
        for encoding in _encodings(head)
        for delimiter in _DELIMITERS
        if (rows := _rows(head, encoding, delimiter)) and max(map(len, rows)) > 1
    ]
    if not tried:
        raise UnsupportedFile("Not a CSV file: no line has two columns.")
    chosen = [profile for profile in profiles if profile.standing in ("chosen", "offered")]
    fitting = [file for entry in tried for file in (*_by_header(entry, chosen), *_by_shape(entry, chosen))]
    if fitting:
        return _by_choice(fitting, is_suitable)
    if any(profile.standing == "chosen" for profile in chosen):
        raise UnsupportedFile("The file does not have the columns that the chosen layout is for.")
    kept = [profile for profile in profiles if profile.standing == "kept"]
    by_header: list[RecognisedFile] = []
    for some in (kept, profiles):
        by_header = [file for entry in tried for file in _by_header(entry, some) if not _is_account_of_others(file)]
        by_header.sort(key=lambda file: (-len(file.profile.header), file.header_row))
        if best := next((file for file in by_header if is_suitable(file)), None):
            return _with_texts(best)
    shaped = [file for entry in tried for file in _by_shape(entry, profiles) if is_suitable(file)]
    if shaped and shaped[0].header_row < 0:
        return shaped[0]
    try:
        return _by_guessing(tried)  # before the shapes of rows with a line above them, which may be a header
    except UnsupportedFile:
        if shaped or by_header:
            # For a profile recognised by its header, the reader says which row cannot be read
            return [*shaped, *by_header][0]
        raise


def _by_choice(fitting: Sequence[RecognisedFile], is_suitable: Callable[[RecognisedFile], bool]) -> RecognisedFile:
    """The file as read by the chosen or offered profile: the first of `fitting` that `is_suitable` can read, else the
    first. Raises UnsupportedFile where the file lacks a column that the profile names; that a row cannot be read is
    left to the reader to say."""
    best = next((file for file in fitting if is_suitable(file)), fitting[0])
    names = [comparable(name) for name in best.names]
    width = len(names) or len(best.profile.shape)
    for field, references in best.profile.columns.items():
        places = [place_of(text, names) for text in references]
        if not any(place is not None and -width <= place < width for place in places):
            raise UnsupportedFile(
                "The chosen layout takes {field} from a column that the file does not have.", field=field
            )
    return best


def header_profiles(row: Sequence[str], profiles: Sequence[Profile]) -> list[Profile]:
    """The profiles all of whose header names occur in this row, the one that names most columns first."""
    names = {comparable(cell) for cell in row if cell}
    fitting = [each for each in profiles if each.header and not any(map(names.isdisjoint, each.header))]
    return sorted(fitting, key=lambda profile: -len(profile.header))


def _encodings(head: bytes) -> list[str]:
    if utf16_codec(head):
        return ["utf-8"]
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return list(dict.fromkeys([likeliest_encoding(head), "cp1252", "cp1250", "cp852", "mac-roman", "cp1251"]))
    return ["cp1252"]  # the head is UTF-8 or ASCII; later lines may not be


def _rows(head: bytes, encoding: str, delimiter: str) -> list[tuple[str, ...]]:
    """The rows of the head; an oversized field or line and what follows are left to the reader, which refuses them."""
    rows: list[tuple[str, ...]] = []
    try:
        for row in csv.reader(visible(Lines(BytesIO(head), encoding=encoding)), delimiter=delimiter):
            rows.append(tuple(row[: COLUMNS_MAX + 1]))  # an even wider one is also left to the reader to refuse
    except (csv.Error, MalformedFile, LimitExceeded):
        pass
    return rows


def _by_header(head: Head, profiles: Sequence[Profile]) -> Iterator[RecognisedFile]:
    for index, row in enumerate(head.rows[:HEADER_ROWS_MAX]):
        fitting = header_profiles(row, profiles) if len(row) > 1 else []
        for profile in fitting:
            if (profile.delimiter or head.delimiter) == head.delimiter:
                why = f"row {index + 1} holds the {len(profile.header)} column names of this layout"
                yield head.file(profile, why, begin=index + 1, names=row)
        if fitting:
            return


def _is_account_of_others(file: RecognisedFile) -> bool:
    """Whether what a shared profile takes for the file's own account is the counterpart's, beside a column of names
    that the profile does not have: the layout is that of another bank, which uses the same words."""
    profile, names = file.profile, [comparable(name) for name in file.names]
    if profile.standing != "shared" or "account" not in profile.columns:
        return False
    known = {text for references in profile.columns.values() for text in references}
    others = tuple(name for name in names if column_field(name) == "name" and name not in known)
    account = next((text for text in profile.columns["account"] if text in names), None)
    if not others or account is None:
        return False
    place = names.index(account)
    are_several = len({row[place] for row in file.sample if place < len(row) and row[place].strip()}) > 1
    return are_several and whose_account(account, {**profile.columns, "name": others}, names, file.sample) == "theirs"


def _with_texts(file: RecognisedFile) -> RecognisedFile:
    """The file; where it has none of the columns from which a shared profile takes words, as those of another year of
    the bank, all further columns with words become the purpose."""
    profile, names = file.profile, [comparable(name) for name in file.names]
    words = [text for field in ("name", "purpose", "bank_text") for text in profile.columns.get(field, ())]
    if profile.standing != "shared" or not words or any(place_of(text, names) is not None for text in words):
        return file
    read = {place_of(text, names) for references in profile.columns.values() for text in references}
    unread = [place for place, name in enumerate(names) if name and place not in read and names.count(name) == 1]
    told = [names[each] for each in unread if any(_WORD.search("".join(row[each : each + 1])) for row in file.sample)]
    columns = {**profile.columns, "purpose": tuple(told)}
    return replace(file, profile=replace(profile, columns=columns)) if told else file


def _by_shape(head: Head, profiles: Sequence[Profile]) -> Iterator[RecognisedFile]:
    rows = head.rows
    for profile in profiles:
        if not profile.shape or (profile.delimiter or head.delimiter) != head.delimiter:
            continue
        start = next((index for index, row in enumerate(rows[:HEADER_ROWS_MAX]) if fits(row, profile.shape)), None)
        if start is None:
            continue
        # a booking of another shape (a comma too many) belongs to the table, not to the lines above it
        start = next((index for index, row in enumerate(rows[:start]) if is_booking(row)), start)
        filled = [row for row in rows[start : start + _SHAPE_ROWS] if any(cell.strip() for cell in row)]
        if sum(fits(row, profile.shape) for row in filled) * 2 >= len(filled):
            yield head.file(profile, f"the rows from row {start + 1} have the shape of this layout", begin=start)


def _by_guessing(tried: Sequence[Head]) -> RecognisedFile:
    """The file read by guessing, as the last resort: known words in a header row, or rows whose columns can be read in
    only one way. Raises UnsupportedFile, as UnknownLayout where bookings are visible."""
    best: tuple[int, Head, int] | None = None
    for head in tried:
        for index, row in enumerate(head.rows[:HEADER_ROWS_MAX]):
            fields = {field for cell in row if (field := column_field(cell))}
            has_amount = "amount" in fields or {"debit", "credit"} <= fields
            score = len(fields) + 5 * ("date" in fields or "value_date" in fields) + 5 * has_amount
            if len(row) > 1 and (best is None or score > best[0]):
                best = (score, head, index)
    if best is None:
        raise UnsupportedFile("Not a CSV file: none of its first {limit} rows has two columns.", limit=HEADER_ROWS_MAX)
    _, head, index = best
    rows = head.rows
    try:
        profile, why = generic_profile(rows[index], rows[index + 1 :], rows[:index], head.delimiter)
        return head.file(
            profile,
            f"row {index + 1}: {why}",
            begin=index + 1,
            names=rows[index],
        )
    except Undecided as doubt:
        raise UnknownLayout(str(doubt), head.file(doubt.profile, "", begin=index + 1, names=rows[index])) from None
    except UnsupportedFile as refusal:
        reason = str(refusal)
    for head in tried:
        try:
            shape = generic_shape(head.rows)
        except UnsupportedFile as refusal:
            shape, reason = None, str(refusal)
        if shape is not None:
            profile, start, why = shape
            above = head.rows[start - 1] if start else ()  # words above the columns are their names, known or not
            has_figure = any(character.isdigit() for character in "".join(above))
            is_header = len(above) == len(head.rows[start]) and not has_figure
            return replace(head.file(profile, why, begin=start), names=above if is_header else ())
    for head in tried:
        rows = head.rows
        first = next((number for number, row in enumerate(rows[:HEADER_ROWS_MAX]) if is_booking(row)), None)
        if first is not None:
            above = next((row for row in reversed(rows[:first]) if any(row)), ())
            names = above if len(above) >= len(rows[first]) else ()
            profile = Profile(name="generic", columns={}, shape=() if names else ("any",) * len(rows[first]))
            raise UnknownLayout(reason, head.file(profile, "", begin=first, names=names))
    raise UnsupportedFile(reason)
