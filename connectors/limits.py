"""The limits on data from a source; one more than the limit is refused with `LimitExceeded`.

They are far above what a bank issues and far below what would stop a worker (docs/decisions/readers.md).
"""

MEGABYTE = 1024 * 1024
FILE_BYTES_MAX = 256 * MEGABYTE
ENTRIES_MAX = 1_000_000  # bookings of one file, details of batches included
LINE_CHARACTERS_MAX = 64 * 1024  # of a text format; a bank's longest line is a few hundred characters
HEAD_BYTES = 64 * 1024  # the part of a file that `detect` gets

NAME_CHARACTERS_MAX = 140  # ISO 20022 Max140Text; finAPI keeps 80
PURPOSE_CHARACTERS_MAX = 2000
KEY_CHARACTERS_MAX = 140  # references, mandates, ids
CODE_CHARACTERS_MAX = 35  # ISO 20022 Max35Text; domain, family and subfamily have fourteen
AMOUNT_DIGITS_MAX = 15

# Limits of the process that parses a file (connectors.parser_process). The slowest real files met, CSV of a million
# rows, take about 1.5 s a megabyte; a mutated file of a few kilobytes has only the base.
READ_SECONDS_BASE = 20  # of the processor
READ_SECONDS_PER_MEGABYTE = 4
READ_WAIT_FACTOR = 5  # by the clock, on a machine that is also busy with other things
READ_MEMORY_BYTES_MAX = 2 * 1024**3  # of address space, with libraries and the tree of the file
READ_OPEN_FILES_MAX = 64
READ_RESULT_BYTES_MAX = 1024**3  # a million bookings are some 400 MB
PIECE_BYTES = 256 * 1024  # in which records are handed over
PIECE_BYTES_MAX = 16 * PIECE_BYTES  # a piece ends with the record that fills it
IDLE_SECONDS_MAX = 300.0  # then an idle process ends; the next file starts another one
END_SECONDS = 5.0  # to end by itself

COLUMNS_MAX = 500  # of a CSV row; the widest export met has some sixty

LINES_MAX = 3_000_000  # of one MT940 file: a line costs time even when it is empty
STATEMENTS_MAX = 100_000  # of one file: eleven years of daily statements for 25 accounts
HELD_ENTRIES_MAX = 50_000  # bookings of an MT940 statement that wait in memory until its currency is known
FIELD_LINES_MAX = 1000  # of one field of MT940; SWIFT allows six
DETAILS_CHARACTERS_MAX = 16 * 1024  # of all :86: of one booking; SWIFT allows 390

XML_ENTRY_BYTES_MAX = 64 * 1024 * 1024  # between two finished entries; libxml2 holds this much as a tree
XML_ENTRY_MARKS_MAX = 1_000_000  # "<" and "=" between two finished entries: about 15,000 details of one batch
XML_BALANCES_MAX = 10_000  # of one statement
XML_TAG_CHARACTERS_MAX = 400  # with its namespace: a long one declared once is repeated in every tag


ZIP_MEMBERS_MAX = 100
ZIP_LISTING_BYTES_MAX = 1024 * 1024  # the names of all members, thousands of them
ZIP_MEMBER_BYTES_MAX = 64 * 1024 * 1024
ZIP_TOTAL_BYTES_MAX = FILE_BYTES_MAX
ZIP_RATIO_MAX = 200  # 200 MB of zeros make a ZIP of 190 KB: 1,028
ZIP_RATIO_FREE_BYTES = 1024 * 1024  # a member this small may have any ratio


def read_seconds_max(file_bytes: int) -> int:
    """The processor time in seconds allowed for a file of this size; for a ZIP container, its packed size counts."""
    return READ_SECONDS_BASE + READ_SECONDS_PER_MEGABYTE * file_bytes // MEGABYTE
