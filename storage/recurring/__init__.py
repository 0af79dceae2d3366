"""Recurring payments: what users decided and added, and what was last reported to them."""
