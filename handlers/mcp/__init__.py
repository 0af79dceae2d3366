"""Serves assistants: the Model Context Protocol at one address, with tools that call the operations of the contract."""
