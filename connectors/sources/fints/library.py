"""The one place that touches the insides of python-fints, so that a new version of it is this file's matter."""

from collections.abc import Iterator, Sequence
from datetime import date
from functools import partial
from typing import Any

from fints.client import FinTS3PinTanClient, FinTSOperations
from fints.segments.statement import HKKAZ5, HKKAZ6, HKKAZ7

from connectors.sources.fints.bank_line import BankLine

INSIDES = (
    "_fetch_with_touchdowns",
    "_find_highest_supported_command",
    "_get_dialog",
    "_send_with_possible_retry",
)  # of the client; `_standing_dialog` and `connection` beside them, and `_fields` of an order


def client_on(line: BankLine, *credentials: str, product: str, state: bytes | None) -> Any:
    """The library's client for these credentials (bank code, login, PIN, address), which sends through `line` in place
    of its own connection. `state` is what an earlier client left."""
    client = FinTS3PinTanClient(*credentials, product_id=product, from_data=state)
    client.connection.session.close()
    client.connection = line
    return client


def mt940_pieces(client: Any, account: Any, since: date | None, until: date) -> Any:
    """The pieces of MT940 as the bank sent them; the library's own function only returns its parsed form."""
    with client._get_dialog() as dialog:
        order = client._find_highest_supported_command(HKKAZ5, HKKAZ6, HKKAZ7)
        return client._fetch_with_touchdowns(
            dialog,
            lambda page: order(
                account=order._fields["account"].type.from_sepa_account(account),
                all_accounts=False,
                date_start=since,
                date_end=until,
                touchdown_point=page,
            ),
            list,
            "HIKAZ",
        )


def joined(pieces: Iterator[bytes | None]) -> Sequence[bytes]:
    """The pieces of MT940 as one document, because banks cut it anywhere; an empty list where there are none."""
    whole = b"".join(filter(None, pieces))
    return [whole] if whole else []


def answer_next_order(client: Any, challenge: Any, tan: str) -> None:
    """Have the client send `tan` in place of its next order, which returns the result of the order that waited for this
    approval. Where the bank does not accept the approval, the order is sent again."""

    def result_of_approved(client: Any, dialog: Any, order: Any, resume: Any) -> Any:
        del client._send_with_possible_retry
        outcome = client.send_tan(challenge, tan)
        is_refused = client.connection.refusal is not None
        return client._send_with_possible_retry(dialog, order, resume) if is_refused else outcome

    client._send_with_possible_retry = partial(result_of_approved, client)


def dialog_to_end(client: Any) -> Any:
    """The dialog that is open at the bank and was not saved for later; None where there is none."""
    dialog = client._standing_dialog
    return dialog if dialog is not None and not dialog.paused and dialog.open else None


def allowed_operations(about: Any) -> set[Any]:
    """The operations of the library that the bank allows for an account by what it says of it (HIUPD), as
    `get_information` has them, which takes a tenth of a second for each account."""
    orders = {each.transaction for each in about.allowed_transactions} if about else set()
    return {operation for operation in FinTSOperations if orders.intersection(operation.value)}
