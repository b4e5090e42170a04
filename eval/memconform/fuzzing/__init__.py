"""Sends the same random requests to several daemons and finds where their responses differ."""
