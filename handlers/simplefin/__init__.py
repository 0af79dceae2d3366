"""Serves SimpleFIN, a protocol of apps that many people have already; a person connects one by pasting one text."""
