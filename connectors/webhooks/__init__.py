"""Sends finished requests to addresses that apps name, from a process that holds nothing else."""
