"""Tests of the room `oracle`."""
