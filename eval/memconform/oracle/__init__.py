"""A model of the contract that runs in memory: what `fuzz --against oracle` expects."""
