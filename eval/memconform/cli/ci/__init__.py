"""The verb `ci`."""
