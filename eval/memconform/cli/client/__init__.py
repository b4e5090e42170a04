"""The verb `client`."""
