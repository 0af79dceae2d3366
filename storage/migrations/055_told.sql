-- Which bookings a statement told: by these it is proven, whatever else is booked on its days. Of those that an older
-- version has stored nothing is known; they are compared with the bookings of their days until their file comes again.
-- needs 036

ALTER TABLE statements ADD COLUMN told TEXT;
ALTER TABLE earlier_statements ADD COLUMN told TEXT;
