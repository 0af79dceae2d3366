"""Work beside the requests: bank syncs, imports of files, and the detection of recurring payments after them."""
