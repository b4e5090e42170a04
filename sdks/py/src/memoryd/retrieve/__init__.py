"""Retrieval: the plan of a search, and its trace."""
