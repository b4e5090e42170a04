"""Test memory daemons written in different languages against one contract."""

__version__ = "0.1.0"
