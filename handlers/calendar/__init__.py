"""The calendar of recurring payments, which calendar apps subscribe to by a secret address."""
