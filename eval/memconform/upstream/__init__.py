"""The scripted upstream: chat, embeddings and reranking for daemons, in a process of its own."""
