"""Retrieval benchmarks: how well and how fast systems find what answers a question."""
