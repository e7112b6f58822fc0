-- The model that the user picked in the editor, with what is sent besides the conversation: of each session that
-- was used with one, and of each workspace whatever one of its sessions was used with last.

CREATE TABLE session_options (
    session INTEGER PRIMARY KEY REFERENCES session ON DELETE CASCADE,
    model TEXT,                                 -- none: that of the settings
    max_tokens INTEGER,
    besides TEXT                                -- JSON
) STRICT;
CREATE TABLE workspace_options (
    workspace TEXT PRIMARY KEY,                 -- absolute real path of the folder
    model TEXT,
    max_tokens INTEGER,
    besides TEXT
) STRICT, WITHOUT ROWID;
