"""What a daemon may be called with; the command line reads it without starting anything."""

from typing import Literal

UpstreamKind = Literal["own", "scripted", "real"]
"""What answers a daemon's calls: its own offline stand-ins, our upstream, or the real services."""
