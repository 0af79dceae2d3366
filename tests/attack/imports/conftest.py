"""The bank and its user of tests/storage."""

from tests.storage.conftest import bank, new_bank

__all__ = ["bank", "new_bank"]
