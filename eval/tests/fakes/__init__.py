"""Fake daemons: correct, or broken in one place.

Each that is a program starts from any folder, as `python -m tests.fakes.NAME`, because the
environment of a checkout has `eval` on its path.
"""
