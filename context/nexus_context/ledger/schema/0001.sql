-- Sessions, their threads of turns and messages, compactions, direct messages, and what is found by text.
--
-- turn.id is thread * 2^32 + seq, message.id is thread * 2^32 + position: a part of a thread is a range of ids.
-- A thread that was forked goes on in its parent below base_*: its history is a few ranges of ids, newest last.

CREATE TABLE thread (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,                   -- its public id
    session INTEGER NOT NULL,                   -- to which it belongs; older ones of a cleared session, too
    parent INTEGER REFERENCES thread,           -- the thread that holds the turn base_seq
    base_seq INTEGER NOT NULL DEFAULT 0,        -- turns, messages and tokens that are the parent's
    base_messages INTEGER NOT NULL DEFAULT 0,
    base_tokens INTEGER NOT NULL DEFAULT 0,
    seq INTEGER NOT NULL DEFAULT 0,             -- of the last turn; the parent's included
    messages INTEGER NOT NULL DEFAULT 0,
    tokens INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX thread_session ON thread (session);
CREATE INDEX thread_parent ON thread (parent) WHERE parent IS NOT NULL;

CREATE TABLE session (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace TEXT NOT NULL,                    -- absolute real path of the folder
    name TEXT NOT NULL,
    thread INTEGER NOT NULL REFERENCES thread,  -- the one it is at
    agent TEXT,
    forked_from INTEGER REFERENCES session ON DELETE SET NULL,
    created TEXT NOT NULL,                      -- ISO 8601, UTC; for people
    updated TEXT NOT NULL,
    changed INTEGER NOT NULL,                   -- grows with every change of any session: the order of lists
    UNIQUE (workspace, name)
) STRICT;
CREATE INDEX session_changed ON session (changed);
CREATE INDEX session_forked ON session (forked_from) WHERE forked_from IS NOT NULL;

CREATE TABLE turn (
    id INTEGER PRIMARY KEY,
    type TEXT NOT NULL CHECK (type IN ('query', 'compaction', 'undo')),
    first INTEGER NOT NULL,                     -- position of its first message
    messages INTEGER NOT NULL,                  -- how many
    before INTEGER NOT NULL,                    -- tokens of all messages of the thread before it
    tokens INTEGER NOT NULL,                    -- of its messages
    in_force INTEGER,                           -- the compaction after this turn: its turn's id
    undone INTEGER NOT NULL DEFAULT 0,          -- whether what last happened to compactions is an undo
    undoes INTEGER,                             -- of an undo: the id of the compaction's turn
    created TEXT NOT NULL,                      -- ISO 8601, UTC; for people
    model TEXT,
    role TEXT,
    permissions TEXT,
    toolset TEXT,                               -- JSON
    event TEXT,                                 -- JSON
    context TEXT                                -- JSON
) STRICT;

CREATE TABLE message (
    id INTEGER PRIMARY KEY,
    turn INTEGER NOT NULL,                      -- seq
    role TEXT NOT NULL,
    summary INTEGER NOT NULL,                   -- 1: of a compaction
    tokens INTEGER NOT NULL,
    counter INTEGER NOT NULL REFERENCES counter,
    length INTEGER,                             -- so many characters of `said` are the content; else it is in data
    said TEXT NOT NULL,                         -- what is searched: text, names and arguments of tool calls
    data TEXT,                                  -- JSON of the rest; none where there is none
    crc INTEGER NOT NULL                        -- CRC-32 of the row, as rows.py has it
) STRICT;

CREATE TABLE counter (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE compaction (
    turn INTEGER PRIMARY KEY,                   -- id
    name TEXT NOT NULL,                         -- its public id
    below INTEGER,                              -- the compaction in force before it: its turn's id
    tokens INTEGER NOT NULL,                    -- of the summary
    kept TEXT NOT NULL,                         -- JSON: half-open ranges of positions
    receipt TEXT NOT NULL                       -- JSON
) STRICT;

-- what a writer called an append, so that a repeated one appends nothing
CREATE TABLE key (
    session INTEGER NOT NULL REFERENCES session ON DELETE CASCADE,  -- the one that was addressed
    key TEXT NOT NULL,
    turn INTEGER NOT NULL,                      -- id
    forked INTEGER NOT NULL,                    -- 1: the turn went to a fork
    PRIMARY KEY (session, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE direct (
    number INTEGER PRIMARY KEY AUTOINCREMENT,   -- the order in which they came
    id TEXT NOT NULL UNIQUE,
    workspace TEXT NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    node TEXT,
    content TEXT NOT NULL,
    created REAL NOT NULL,                      -- seconds since the epoch
    expires REAL,
    ttl REAL,
    priority REAL NOT NULL,
    task TEXT,
    session TEXT,
    metadata TEXT,                              -- JSON
    delivered INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX direct_waiting ON direct (workspace, target, priority DESC, number) WHERE delivered = 0;

CREATE VIRTUAL TABLE found USING fts5 (
    said, content = 'message', content_rowid = 'id', tokenize = "unicode61 remove_diacritics 2"
);
-- who inserts a message inserts it here, too: a trigger would have the index written out for each
CREATE TRIGGER message_lost AFTER DELETE ON message BEGIN
    INSERT INTO found (found, rowid, said) VALUES ('delete', old.id, old.said);
END;
