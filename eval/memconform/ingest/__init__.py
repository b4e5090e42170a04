"""Corpora, seeding a brain, proving that its index is complete, and the daemon monitor."""
