"""The detection of recurring payments: one step per module, in the order of docs/recurring.md."""
