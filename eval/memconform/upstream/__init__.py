"""The scripted upstream: a process that serves chat, embeddings and reranking to daemons."""
