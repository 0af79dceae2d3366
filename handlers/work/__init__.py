"""What runs beside requests, and what a process opens for them: sources, keys, housekeeping."""
