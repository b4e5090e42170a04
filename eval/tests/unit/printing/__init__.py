"""Tests of the room `printing`."""
