CREATE TABLE settings (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE documents (
  path TEXT PRIMARY KEY,
  stamp TEXT NOT NULL,        -- sizes and times of the files that the row was made from
  title TEXT,
  session_id TEXT,
  tags TEXT NOT NULL,         -- JSON array
  metadata TEXT NOT NULL,     -- JSON object
  checksum TEXT NOT NULL      -- of the columns above, and of the texts and vectors of its chunks
) WITHOUT ROWID;

CREATE TABLE chunks (
  id INTEGER PRIMARY KEY,     -- slot + 1, the rowid in chunk_terms
  path TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  text TEXT NOT NULL,
  vector BLOB                 -- little-endian float32
);

-- Contentless: the chunk's text in NFKC, which chunks.text gives again when a row is deleted.
CREATE VIRTUAL TABLE chunk_terms USING fts5 (
  text,
  content = '',
  tokenize = 'porter unicode61'
);
