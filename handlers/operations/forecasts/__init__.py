"""The forecast of account balances, as the interface shows it."""
