-- What every import contributed, under the name that the program has for it now.

ALTER TABLE tellings RENAME TO contributions;
ALTER TABLE contributions RENAME COLUMN told_at TO imported_at;
ALTER TABLE told_bookings RENAME TO booking_wordings;
ALTER TABLE sightings RENAME TO contribution_bookings;
ALTER TABLE contribution_bookings RENAME COLUMN telling TO contribution;
