"""The change that ingests documents."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from memoryd.brain.draft import Draft
from memoryd.files.tree import Document
from memoryd.problem import problem_prefix
from memoryd.wire import exact_json


@dataclass(frozen=True, slots=True)
class NewDocument:
    path: str
    content: bytes
    sidecar: dict[str, Any]
    """`contentType` and, if present, `title`, `tags` and `metadata`."""


def ingestion(documents: Sequence[NewDocument]) -> Callable[[Draft], None]:
    """The change that stores all of `documents`; if a path occurs twice, the last one wins."""
    last = {document.path: number for number, document in enumerate(documents)}
    sidecars = [exact_json.dumps(d.sidecar).encode() for d in documents]

    def stage(draft: Draft) -> None:
        for number, new in enumerate(documents):
            if last[new.path] == number:
                with problem_prefix(f"documents[{number}]"):
                    draft.store(new.path, Document(new.content, sidecars[number]))

    return stage
