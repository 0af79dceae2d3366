"""Addresses at which apps are told what happens, and what has to be told there."""
