"""Facts from elsewhere that bank data are read with: exchange rates, bank names, transaction codes."""
