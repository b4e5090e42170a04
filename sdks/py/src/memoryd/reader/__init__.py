"""Readers, which answer a question from chunks."""
