"""Reference data from elsewhere for reading bank data: exchange rates, bank names, transaction codes."""
