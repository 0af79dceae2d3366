"""The JSON shapes of imports: the report on a file, and the imports that can be undone."""

from collections.abc import Iterable

from analytics.records import TransactionRecord
from connectors.bank_csv.layouts import CsvLayout
from handlers.json_shapes import Json, instant, money
from handlers.sync.uploaded_files import FileImport
from storage.importing.batches import AccountStatement
from storage.kept_layouts import KeptLayout
from storage.undo_and_merge.rebuild import Rebuilt
from storage.undo_and_merge.undoable_imports import StoredImport


def file_import(value: FileImport) -> Json:
    """FileImport of the contract."""
    return {
        "importId": value.id,
        "status": "done" if value.is_done else "running",
        "isDryRun": value.is_dry_run,
        "fileName": value.name,
        "format": value.format,
        "error": value.error,
        "new": value.new,
        "known": value.known,
        "accountIds": list(value.account_ids),
        "statements": [statement(told, rows) for told, rows in zip(value.statements, value.first_rows, strict=True)],
        "warnings": list(value.warnings),
        "layouts": [layout(each) for each in value.layouts],
        "candidates": [
            {"accountId": each.id, "accountName": each.name, "bankName": each.bank_name} for each in value.candidates
        ],
        "overlap": {"accountId": value.overlap[0].id, "bookings": value.overlap[1]} if value.overlap else None,
    }


def layout(value: CsvLayout) -> Json:
    """CsvLayout of the contract."""
    return {
        "origin": "guessed" if value.is_guessed else "chosen",
        "hasHeader": value.has_header,
        "columns": [{"name": each.name, "field": each.field, "example": each.example} for each in value.columns],
        "sign": value.sign,
        "currency": value.currency,
        "currencySource": value.currency_source,
        "decimalMark": value.decimal,
        "dateFormats": list(value.dates),
        "profile": value.profile,
    }


def kept_layout(value: KeptLayout) -> Json:
    """KeptLayout of the contract."""
    return {
        "id": value.id,
        "fileName": value.file_name,
        "keptAt": instant(value.kept_at),
        "profile": value.profile,
        "accountId": value.account_id,
    }


def statement(told: AccountStatement, first_rows: Iterable[TransactionRecord]) -> Json:
    """ImportedStatement of the contract."""
    said, currency = told.statement, told.account.currency
    return {
        "iban": told.account.iban,
        "accountName": told.account.name or told.account.stable_key,
        "currency": currency,
        "rows": told.entries,
        "bookings": len(told.places),
        "pending": told.pending_entries,
        "firstDay": told.first_day.isoformat() if told.first_day else None,
        "lastDay": told.last_day.isoformat() if told.last_day else None,
        "opening": money(said.opening, currency) if said.opening is not None else None,
        "closing": money(said.closing, currency) if said.closing is not None else None,
        "closingDate": said.closing_date.isoformat() if said.closing_date else None,
        "addsUp": told.adds_up,
        "firstRows": [
            {
                "bookingDate": row.booking_date.isoformat(),
                "amount": money(row.amount, row.currency),
                "currency": row.currency,
                "counterpartName": row.counterpart_name,
                "purpose": row.purpose,
            }
            for row in first_rows
        ],
    }


def past_file_import(value: StoredImport) -> Json:
    """FileImport of the contract for an import whose details are no longer known; what it brought can still be
    undone."""
    return {
        "importId": value.job_id,
        "status": "done",
        "isDryRun": False,
        "fileName": ", ".join(value.labels),
        "format": None,
        "error": None,
        "new": value.new or 0,
        "known": 0,
        "accountIds": list(value.account_ids),
        "statements": [],
        "warnings": [],
        "layouts": [],
        "candidates": [],
        "overlap": None,
    }


def past_import(value: StoredImport, bank_name: str) -> Json:
    """PastImport of the contract."""
    return {
        "importId": value.job_id,
        "importedAt": instant(value.imported_at),
        "source": bank_name,
        "fileNames": list(value.labels),
        "accountIds": list(value.account_ids),
        "new": value.new or 0,
    }


def rebuilt(value: Rebuilt) -> Json:
    """How many bookings were removed and added, and which accounts are gone, after accounts were rebuilt."""
    return {"removed": value.removed, "added": value.added, "accountsGone": list(value.accounts_gone)}
