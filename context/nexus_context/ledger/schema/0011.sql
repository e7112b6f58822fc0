-- Sessions of other assistants that are mirrored here, and how far each of their files was read.

-- where a session comes from; it may have been continued here since
CREATE TABLE IF NOT EXISTS origin (
    session INTEGER PRIMARY KEY REFERENCES session ON DELETE CASCADE,
    assistant TEXT NOT NULL,
    id TEXT NOT NULL,                           -- that its program gave it
    path TEXT NOT NULL,
    parent TEXT                                 -- of a sub-agent: the id of the session that started it
) STRICT, WITHOUT ROWID;

-- the one session that follows another program's, and its last turn from there: behind that, others wrote
CREATE TABLE IF NOT EXISTS mirror (
    assistant TEXT NOT NULL,
    id TEXT NOT NULL,
    session INTEGER REFERENCES session ON DELETE SET NULL,  -- NULL: the user deleted it; it is not mirrored again
    turn TEXT,                                  -- public id
    reported INTEGER NOT NULL,                  -- 1: its usages have been compared with our counts
    PRIMARY KEY (assistant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS mirror_session ON mirror (session) WHERE session IS NOT NULL;

CREATE TABLE IF NOT EXISTS mirror_file (
    path TEXT PRIMARY KEY,
    stamp TEXT NOT NULL,                        -- JSON
    progress TEXT NOT NULL                      -- JSON
) STRICT, WITHOUT ROWID;

ALTER TABLE report ADD COLUMN created TEXT;     -- ISO 8601, UTC; none in reports of earlier versions
