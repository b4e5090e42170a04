"""The index of a brain: postings, vectors, filters, and the log that keeps them."""
