"""The process: its providers and its server."""
