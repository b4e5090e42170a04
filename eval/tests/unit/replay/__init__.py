"""Tests of the room `replay`."""
