"""Reference memory daemon: SQLite FTS5 and feature-hash search over documents kept as files."""

__version__ = "0.1.0"
