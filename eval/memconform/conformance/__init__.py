"""Conformance cases as data, their matchers, their executor, and lists of known failures."""
