"""Forecasts of balances, and their errors in the past."""
