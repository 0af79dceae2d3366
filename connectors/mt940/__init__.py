"""The formats MT940 and MT942 (SWIFT): reading."""
