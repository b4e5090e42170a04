"""Scores, order and fusion: arithmetic only."""
