"""The verb `wmb`."""
