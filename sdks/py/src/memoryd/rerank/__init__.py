"""Rerankers, which score chunks again."""
