"""Recurring payments: what users decided, added, and were told about them."""
