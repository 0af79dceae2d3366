"""Events on a user's data: streams, webhooks, and the deliveries to them."""
