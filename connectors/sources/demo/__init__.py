"""The demo bank: invented households whose bookings are a pure function of seed, account and calendar day."""
