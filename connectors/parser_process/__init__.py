"""The parsing of statement files in a separate process, with limits on time, memory and open files."""
