"""The verb `mutate`."""
