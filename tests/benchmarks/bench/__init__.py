"""What `bankdata bench` does: a store of any size, a server over it, a load, and what they cost."""
