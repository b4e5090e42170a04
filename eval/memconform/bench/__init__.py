"""Retrieval benchmarks: how well and how fast systems find the items that answer a question."""
