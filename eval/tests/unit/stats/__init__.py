"""Tests of the room `stats`."""
