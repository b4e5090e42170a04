"""The only way to a terminal or CI log; redacts and escapes foreign text."""
