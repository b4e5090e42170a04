"""Kinds of upstream, in a module that is cheap for the command line to import."""

from typing import Literal

UpstreamKind = Literal["own", "scripted", "real"]
"""Who answers a daemon's calls: its own offline stubs, the scripted upstream, or real services."""
