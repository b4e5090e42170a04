"""The verb `datasets`."""
