"""The way from the listening socket to one client's requests, with a bound on everything that a client can use or
delay."""
