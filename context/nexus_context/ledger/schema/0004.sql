-- Verified history: a sum of each turn that covers the turn before it, and a mark of each write.

ALTER TABLE turn ADD COLUMN sum BLOB;           -- as chain.py has it; none of a turn that version 3 wrote

-- which ledger it is, whatever its path; `nexus sessions backup` keeps it
CREATE TABLE ledger (id BLOB NOT NULL) STRICT;
INSERT INTO ledger VALUES (randomblob(16));

-- the last writes, in a ring: witness.py compares them with the file beside the ledger
CREATE TABLE mark (
    slot INTEGER PRIMARY KEY,
    number INTEGER NOT NULL,                    -- of the write, counted over the ledger's life
    token INTEGER NOT NULL                      -- random: tells two ledgers apart that went on from one copy
) STRICT;
INSERT INTO mark SELECT 1, 1, random() WHERE EXISTS (SELECT 1 FROM session);

-- Messages in scripts that put no spaces between words, as spaceless.py takes them apart.
CREATE VIRTUAL TABLE part USING fts5 (
    said, content = '', contentless_delete = 1,
    tokenize = "unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);
-- messages of earlier versions with smaller ids are not in it yet: a large ledger opens at once, see part_index.py
CREATE TABLE part_missing (below INTEGER NOT NULL) STRICT;
INSERT INTO part_missing SELECT ifnull(max(id) + 1, 0) FROM message;
DROP TRIGGER message_lost;
CREATE TRIGGER message_lost AFTER DELETE ON message BEGIN
    INSERT INTO found (found, rowid, said) VALUES ('delete', old.id, old.said);
    DELETE FROM part WHERE rowid = old.id;
END;
