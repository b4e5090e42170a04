"""The verb `upstream`."""
