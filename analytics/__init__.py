"""Analyses: pure functions, frame in, frame out; no clock, no input or output."""
