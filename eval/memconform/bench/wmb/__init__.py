"""WMB-100K: what a memory system returns for each question, and its score."""
