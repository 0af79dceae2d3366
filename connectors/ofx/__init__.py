"""OFX and QFX: read and written."""
