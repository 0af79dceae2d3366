"""What forecasts are made of: which bookings they look at, and what recurs, found after an import or when asked."""
