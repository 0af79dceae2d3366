"""SimpleFIN: what apps read that people have already, by one pasted text."""
