"""Keys that a store keeps."""
