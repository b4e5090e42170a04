"""Fake daemons for tests and benches: correct, broken in one place, or as fast as possible."""
