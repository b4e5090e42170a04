"""The verb `parity`."""
