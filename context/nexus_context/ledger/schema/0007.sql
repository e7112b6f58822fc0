-- Which counters counted a session's messages: one look-up for each counter, however long the session is.

CREATE INDEX IF NOT EXISTS message_counter ON message (counter);
