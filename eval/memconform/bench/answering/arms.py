"""The arms without retrieval that show what retrieval is worth."""

from collections.abc import Mapping
from typing import Literal

Control = Literal["oracle", "full-context", "no-memory", "always-abstain", "random-k"]

CONTROLS: Mapping[Control, str] = {
    "oracle": "the gold evidence and nothing else",
    "full-context": "all sessions that fit, from the newest",
    "no-memory": "nothing but the question",
    "always-abstain": "no call: every answer is that there is no information",
    "random-k": "as many items as are retrieved, drawn at random",
}
"""Arms without retrieval, and what the reader sees in each."""

WITHOUT_EVIDENCE: tuple[Control, ...] = ("no-memory", "always-abstain")
"""Controls in which no evidence is shown, whose answers are therefore not told apart by it."""
