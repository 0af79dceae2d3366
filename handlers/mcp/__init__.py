"""Assistants: the Model Context Protocol at one address, and tools that call the operations of the contract."""
