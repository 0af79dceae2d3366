"""What runs besides requests: bank syncs, and the detection of recurring payments after them."""
