"""Stored results of any kind, read together: what a report shows, whatever its format."""
