"""The formats camt.052, .053 and .054 (ISO 20022): reading and writing."""
