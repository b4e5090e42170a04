"""Holds memory daemons written in different languages to one contract."""

__version__ = "0.1.0"
