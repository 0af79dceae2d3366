"""MT940 and MT942 (SWIFT): read."""
