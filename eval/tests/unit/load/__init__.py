"""Tests of the room `load`."""
