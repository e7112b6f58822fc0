-- Agents that live: what each was asked to be, so that it is there again when a daemon starts anew.

CREATE TABLE agent (
    number INTEGER PRIMARY KEY AUTOINCREMENT,   -- the order in which they were started: parents come first
    workspace TEXT NOT NULL,                    -- absolute real path of the folder
    name TEXT NOT NULL,
    parent INTEGER REFERENCES agent ON DELETE CASCADE,  -- none: the folder's own agent
    started TEXT NOT NULL,                      -- ISO 8601, UTC; for people
    wanted TEXT NOT NULL,                       -- JSON
    UNIQUE (workspace, name)
) STRICT;
CREATE INDEX agent_parent ON agent (parent) WHERE parent IS NOT NULL;
