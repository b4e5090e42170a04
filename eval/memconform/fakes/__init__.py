"""Daemons that behave as they are told: good, broken at one place, or as fast as can be."""
