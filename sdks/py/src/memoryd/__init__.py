"""The Python reference daemon: keyword and vector search over documents stored as files."""

__version__ = "0.1.0"
