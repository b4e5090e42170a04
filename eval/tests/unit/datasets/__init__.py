"""Tests of the room `datasets`."""
