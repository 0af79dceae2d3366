"""From the listening socket to one client's requests, with a bound on everything a client can take or keep waiting."""
