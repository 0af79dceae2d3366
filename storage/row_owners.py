"""Every table of the store: whose rows it has, and by which column they belong to a user."""

from collections.abc import Mapping

OF_USERS: Mapping[str, str] = {
    "users": "id",
    **dict.fromkeys(
        (
            "connections",
            "connection_secrets",
            "connection_attempts",
            "accounts",
            "account_sources",
            "account_aliases",
            "account_keys",
            "transactions",
            "pending_transactions",
            "taken_back_transactions",
            "statements",
            "jobs",
            "job_leases",
            "source_calls",
            "journal",
            "contributions",
            "booking_wordings",
            "contribution_bookings",
            "earlier_accounts",
            "earlier_account_sources",
            "earlier_transactions",
            "earlier_pending_transactions",
            "earlier_statements",
            "user_rules",
            "corrections",
            "detections",
            "access_record",
            "second_factors",
            "recovery_codes",
            "passkeys",
            "file_imports",
        ),
        "user_id",
    ),
}
"""Rows of one user each. Where a store is spread over several machines, all rows of a user lie on one of them."""

OF_ALL = (
    "schema_version",
    "settings",
    "documents",
    "user_names",
    "oauth_clients",
    "oauth_requests",
    "oauth_codes",
    "oauth_grants",
    "oauth_refresh_tokens",
    "oauth_revoked_tokens",
    "oauth_sessions",
    "oauth_throttles",
)
"""What the store remembers of itself, and what the authorization server remembers."""
