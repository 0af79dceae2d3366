"""Accounts rebuilt from what their imports said: to take an import back, to merge two accounts, to delete one."""
