"""The browser page where people see their money: static files, a client of the public contract like any other."""
