"""Agreement of two or more runs of the same questions."""
