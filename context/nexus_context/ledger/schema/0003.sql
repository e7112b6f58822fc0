-- Names that agents have had, so that one that has ended is not taken for a name that only clients know.

CREATE TABLE agent_name (
    workspace TEXT NOT NULL,                    -- absolute real path of the folder
    folded TEXT NOT NULL,                       -- the name without its case
    name TEXT NOT NULL,
    PRIMARY KEY (workspace, folded, name)
) STRICT, WITHOUT ROWID;
INSERT INTO agent_name SELECT workspace, casefold(name), name FROM agent;
