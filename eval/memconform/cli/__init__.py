"""The `memconform` command line: one thin module per command."""
