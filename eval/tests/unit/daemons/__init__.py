"""Tests of the room `daemons`."""
