"""Tests of the room `contract`."""
