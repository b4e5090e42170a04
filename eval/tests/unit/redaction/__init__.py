"""Tests of the room `redaction`."""
