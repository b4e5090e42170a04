"""`--executor`: a command whose shards are done by a cluster."""
