"""What WMB-100K calls its parts and questions; the command line loads no more of it."""

from typing import Final, Literal

Part = Literal["A", "B", "both"]
"""Part A asks about the documents, part B about the conversations."""

FALSE_MEMORY: Final = "FalseMemory"
"""The type of questions about what was never said."""
