"""The finer categories, and what a request says of them."""
