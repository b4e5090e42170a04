"""Tests of the room `fuzzing`."""
