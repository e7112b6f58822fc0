-- How a turn ended, by its provider: usage, reason to stop, error.

ALTER TABLE turn ADD COLUMN outcome TEXT;       -- JSON; none where nothing was said
