"""The index of a brain: terms, vectors, filters."""
