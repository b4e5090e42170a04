"""Stored results for other programs: CTRF, CSV, annotations, a badge, a summary in Markdown."""
