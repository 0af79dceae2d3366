"""The user's words on single bookings (category, note, tags, parts), and how they find their bookings again when ids
change."""
