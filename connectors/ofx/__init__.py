"""The formats OFX and QFX: reading and writing."""
