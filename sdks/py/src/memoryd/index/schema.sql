CREATE TABLE IF NOT EXISTS settings (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS documents (
  path TEXT PRIMARY KEY,
  stamp TEXT NOT NULL,        -- sizes and times of the files that the row was made from
  title TEXT,
  session_id TEXT,
  tags TEXT NOT NULL,         -- JSON array
  metadata TEXT NOT NULL,     -- JSON object
  checksum TEXT NOT NULL      -- of the columns above, and of the texts and vectors of its chunks
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS chunks (
  id INTEGER PRIMARY KEY,     -- slot + 1, the rowid in `chunk_terms`
  path TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  text TEXT NOT NULL,
  vector BLOB
);
CREATE UNIQUE INDEX IF NOT EXISTS chunks_by_path ON chunks (path, ordinal);

-- Contentless: the text in NFKC; to delete a row, it is computed again from `chunks.text`.
CREATE VIRTUAL TABLE IF NOT EXISTS chunk_terms USING fts5 (
  text,
  content = '',
  tokenize = 'porter unicode61'
);
