"""camt.052, .053 and .054 (ISO 20022): read and written."""
