"""Tests of the room `conformance`."""
