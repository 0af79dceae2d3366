"""The steps that a request passes before its operation is called, and the call."""
