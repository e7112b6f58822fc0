-- The model parameters that a session was created with.

CREATE TABLE IF NOT EXISTS session_parameters (
    session INTEGER PRIMARY KEY REFERENCES session ON DELETE CASCADE,
    parameters TEXT NOT NULL                    -- JSON, an object
) STRICT;
