"""What opens banks: its keys, the secrets that they seal, attempts to connect a bank, and how often one was asked."""
