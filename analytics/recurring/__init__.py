"""How recurring payments are found: one step per module, in the order of docs/recurring.md."""
