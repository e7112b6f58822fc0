-- What providers counted of requests beside what we estimated (tokens.correction): figures only, no text. They outlive
-- their turns, so that what was learned of a family of models does, too; `turn` is NULL then.

CREATE TABLE IF NOT EXISTS report (
    id INTEGER PRIMARY KEY,                     -- the order in which they came
    family TEXT NOT NULL,
    thread INTEGER NOT NULL,                    -- tells conversations apart
    turn INTEGER,                               -- id
    reported INTEGER NOT NULL,                  -- tokens
    estimated INTEGER NOT NULL,
    shown INTEGER NOT NULL,
    anchors INTEGER NOT NULL                    -- 1: later requests of the conversation contain this one
) STRICT;

CREATE INDEX IF NOT EXISTS report_family ON report (family, id);
CREATE INDEX IF NOT EXISTS report_turn ON report (turn);
