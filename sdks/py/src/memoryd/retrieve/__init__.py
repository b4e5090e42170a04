"""Retrieval: the plan of a search, its chunks and its trace."""
