"""Rebuilding of accounts from the records of their imports: to undo an import, merge two accounts, or delete one."""
