"""Recurring payments: listed with all that led to them, and what people say about them."""
