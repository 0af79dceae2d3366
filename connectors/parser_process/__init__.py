"""Statement files are parsed in a process of its own, within limits of time, memory and open files."""
