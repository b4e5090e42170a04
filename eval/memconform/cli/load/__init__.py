"""The verb `fuzz`."""
