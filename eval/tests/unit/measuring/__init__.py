"""Tests of the room `measuring`."""
