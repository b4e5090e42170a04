"""The `memconform` command: one file a verb, each thin."""
