"""The ISO 20022 bank transaction code of a German Geschaeftsvorfallcode (GVC), depending on the sign of the booking."""

from importlib.resources import files


def bank_transaction_code_of(gvc: str | None, *, is_credit: bool) -> str | None:
    """The code DOMAIN-FAMILY-SUBFAMILY of a GVC; None for no GVC, an unknown one, and one without a meaning (such as
    999, free text)."""
    return _CODES.get((gvc, is_credit))


def _codes() -> dict[tuple[str | None, bool], str]:
    codes: dict[tuple[str | None, bool], str] = {}
    for line in files("connectors.reference").joinpath("gvc.tsv").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            debit, credit, gvcs = line.split("\t")
            for gvc in gvcs.split():
                codes[gvc, False], codes[gvc, True] = debit, credit or debit
    return codes


_CODES = _codes()
