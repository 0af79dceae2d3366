"""German banks, asked directly by FinTS 3.0 with PIN and TAN, through the library python-fints (extra `fints`)."""
