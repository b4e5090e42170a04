"""Tests of the project itself: its documents, markers, imports and scripts."""
