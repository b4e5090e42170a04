"""The Python reference daemon: SQLite FTS5 and vector search over documents stored as files."""

__version__ = "0.1.0"
