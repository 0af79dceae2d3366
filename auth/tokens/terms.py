"""Comparison of terms: whether one grant shows more than another, and what becomes of a grant when accounts merge."""

from collections.abc import Collection

from msgspec.structs import replace

from auth.tokens.access_check import coverage_of
from storage.oauth.grants import Terms


def narrower(held: Terms, wanted: Terms) -> Terms:
    """The terms that cover only what both terms cover: the accounts of both, bookings if neither is limited to figures,
    whole account numbers if both show them."""
    held_accounts, wanted_accounts = coverage_of(held), coverage_of(wanted)
    accounts, all_but = held.accounts, held.all_but
    if held_accounts is None or wanted_accounts is None:
        accounts, all_but = (wanted.accounts, wanted.all_but) if held_accounts is None else (accounts, all_but)
    elif held.all_but and wanted.all_but:
        accounts = tuple(sorted(held_accounts.accounts | wanted_accounts.accounts))
    else:
        listed, other = (wanted_accounts, held_accounts) if held.all_but else (held_accounts, wanted_accounts)
        accounts, all_but = tuple(sorted(filter(other.covers, listed.accounts))), False
    return Terms(
        accounts=accounts,
        all_but=all_but,
        figures_only=held.figures_only or wanted.figures_only,
        full_numbers=held.full_numbers and wanted.full_numbers,
    )


def is_within(wanted: Terms, held: Terms, owned: Collection[str]) -> bool:
    """Whether the terms `wanted` show nothing that the terms `held` do not show, of the user's accounts (`owned`, their
    ids) and of accounts added later."""
    covered, wished = coverage_of(held), coverage_of(wanted)
    accounts_within = all(
        covered is None or covered.covers(each) for each in owned if wished is None or wished.covers(each)
    )
    later_within = covered is None or covered.is_all_but or (wished is not None and not wished.is_all_but)
    return (
        accounts_within
        and later_within
        and (wanted.figures_only or not held.figures_only)
        and (held.full_numbers or not wanted.full_numbers)
    )


def would_widen(terms: Terms, *, source_id: str, target_id: str) -> bool:
    """Whether a grant with these terms covers the target account but not the source, so that it shows more once the
    source is merged into the target."""
    coverage = coverage_of(terms)
    return coverage is not None and coverage.covers(target_id) and not coverage.covers(source_id)


def without_account(terms: Terms, account_id: str) -> Terms:
    """Return the terms without this account: taken off the list, or added to the exceptions of terms that cover all
    accounts but some. `terms.accounts` must not be None (all accounts): the result would then cover none."""
    named = set(terms.accounts or ())
    return replace(terms, accounts=tuple(sorted(named | {account_id} if terms.all_but else named - {account_id})))
