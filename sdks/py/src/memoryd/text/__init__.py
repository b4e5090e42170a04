"""Texts: terms, chunks, front matter."""
