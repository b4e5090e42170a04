"""The client of a memory daemon."""

from memory_client.client import Event, MemoryClient
from memory_client.errors import CallError, Kind

__all__ = ["CallError", "Event", "Kind", "MemoryClient"]
