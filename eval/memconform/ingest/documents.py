"""What a brain is filled from: reference answers, or a folder of documents."""

import hashlib
import mimetypes
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from memconform.contract.wire import JsonValue
from memconform.datasets.corpus import corpus_files
from memconform.datasets.model import Dataset
from memconform.errors import UsageError

CONTENT_LIMIT = 8 * 2**20
"""The contract's limit of one document, in bytes."""


@dataclass(frozen=True, slots=True)
class Document:
    path: str
    content: bytes
    content_type: str
    metadata: Mapping[str, JsonValue] | None = None


def reference_documents(dataset: Dataset) -> Iterator[Document]:
    """One document a row that has a reference answer, whichever rows are asked.

    Raises:
        UsageError: where no row has one.
    """
    empty = True
    for row, question in enumerate(dataset, start=1):
        if question.reference_answer is not None:
            empty = False
            name = re.sub(r"[^A-Za-z0-9.-]+", "-", question.id)[:80]
            content = question.reference_answer.encode()
            yield Document(f"reference/{row:06}-{name}.md", content, "text/markdown")
    if empty:
        raise UsageError(
            f"{dataset.path}: no row has a reference_answer to seed a brain from",
            code="nothing_to_seed",
            hint="give --corpus DIR, or add reference_answer",
        )


def corpus_documents(folder: Path) -> Iterator[Document]:
    """Every file below `folder` that counts as a document.

    Raises:
        UsageError: where the folder is missing or empty, or a file is too large.
    """
    files = corpus_files(folder)
    for path in files:
        size = path.stat().st_size
        if size > CONTENT_LIMIT:
            raise UsageError(
                f"{path} has {size} bytes; a document may have {CONTENT_LIMIT}",
                code="document_too_large",
                hint="split the file",
            )
    for path in files:
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        try:
            path.name.encode()
            yield Document(path.relative_to(folder).as_posix(), path.read_bytes(), kind)
        except (OSError, UnicodeEncodeError) as error:
            raise UsageError(
                f"{str(path)!r}: {getattr(error, 'strerror', None) or 'the name is not UTF-8'}",
                code="document_unreadable",
                hint="mend or remove the file",
            ) from error


def corpus_digest(folder: Path) -> str:
    """SHA-256 over the paths and contents of a corpus; raises as `corpus_documents` does."""
    digest = hashlib.sha256()
    for document in corpus_documents(folder):
        content = hashlib.sha256(document.content).hexdigest()
        digest.update(f"{document.path}\0{content}\0".encode())
    return digest.hexdigest()
