"""What a daemon returned for a question: chunks of the shared brain, in the benchmark's terms."""

from dataclasses import dataclass
from typing import Literal

DocumentKind = Literal["session", "fact"]


@dataclass(frozen=True, slots=True)
class Hit:
    """A returned chunk."""

    rank: int
    """From 1."""
    path: str
    kind: DocumentKind
    session: str
    """The id that the benchmark gives the session: of the chunk, or that the fact is from."""
    date: str
    """The day of the session, as the benchmark writes it."""
    score: float
    text: str
    """Without front matter."""
