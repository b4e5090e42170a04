"""Tests of the harness and of sdks/py share this: each session has a home of its own."""

pytest_plugins = ("tests.isolation",)
