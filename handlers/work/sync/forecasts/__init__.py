"""The data that forecasts start from: bookings and recurring flows, found after an import or on request."""
