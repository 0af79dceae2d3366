"""The sending of webhooks: requests to addresses that apps name, from a process that has no other data."""
