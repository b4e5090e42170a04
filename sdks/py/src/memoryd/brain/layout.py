"""Where the parts of a brain are, below the state folder."""

from dataclasses import dataclass
from pathlib import Path

INDEX_SUFFIX = ".log"


@dataclass(frozen=True, slots=True)
class Layout:
    documents: Path
    sidecars: Path
    description: Path
    index: Path

    @classmethod
    def of(cls, home: Path, brain_id: str) -> "Layout":
        return cls(
            documents=home / "brains" / brain_id,
            sidecars=home / "meta" / brain_id,
            description=home / "descriptions" / f"{brain_id}.txt",
            index=home / "index" / "py" / f"{brain_id}{INDEX_SUFFIX}",
        )


def create_folders(home: Path) -> None:
    """Create the folders that all brains share."""
    for folder in ("brains", "meta", "descriptions", "staging", "index/py"):
        (home / folder).mkdir(parents=True, exist_ok=True)
