"""Corpora to seed a brain from: reference answers, a folder of files, or documents in memory."""

import hashlib
import mimetypes
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from memconform.contract.wire import JsonValue
from memconform.datasets.corpus import corpus_files
from memconform.datasets.question import Dataset
from memconform.errors import UsageError

_BATCH_BYTES = 4 * 2**20

CONTENT_LIMIT = 8 * 2**20
"""The contract's limit for one document, in bytes."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document to ingest."""

    path: str
    content: bytes
    content_type: str
    metadata: Mapping[str, JsonValue] | None = None


class Corpus(Protocol):
    """A source of documents for seeding a brain."""

    def documents(self) -> Iterable[Document]:
        """Read the documents; every call yields them in the same order.

        Raises:
            UsageError: if they cannot be read, or cannot be sent to a daemon.
        """
        ...


@dataclass(frozen=True, slots=True)
class ReferenceAnswers:
    """One document for each dataset row with a reference answer, including rows not selected."""

    dataset: Dataset

    @property
    def identity(self) -> str:
        """Distinguishes this corpus from others of the same dataset."""
        return "reference"

    def documents(self) -> Iterator[Document]:
        """Yield the reference answers.

        Raises:
            UsageError: `nothing_to_seed` if no row has one.
        """
        empty = True
        for row, question in enumerate(self.dataset, start=1):
            if question.reference_answer is not None:
                empty = False
                name = re.sub(r"[^A-Za-z0-9.-]+", "-", question.id)[:80]
                content = question.reference_answer.encode()
                yield Document(f"reference/{row:06}-{name}.md", content, "text/markdown")
        if empty:
            raise UsageError(
                f"{self.dataset.path}: no row has a reference_answer to seed a brain from",
                code="nothing_to_seed",
                hint="use --corpus DIR, or add reference_answer to the dataset",
            )


@dataclass(frozen=True, slots=True)
class CorpusFolder:
    """The document files in a folder and its subfolders."""

    folder: Path

    @property
    def identity(self) -> str:
        """The SHA-256 of all paths and contents; raises as `documents` does."""
        digest = hashlib.sha256()
        for document in self.documents():
            content = hashlib.sha256(document.content).hexdigest()
            digest.update(f"{document.path}\0{content}\0".encode())
        return f"corpus:{digest.hexdigest()}"

    def documents(self) -> Iterator[Document]:
        """Yield the files as documents.

        Raises:
            UsageError: `corpus_empty` if the folder is missing or has no documents,
                `document_too_large` for a file above `CONTENT_LIMIT`, `document_unreadable` for
                one that cannot be read or whose name is not UTF-8.
        """
        files = corpus_files(self.folder)
        for path in files:
            size = path.stat().st_size
            if size > CONTENT_LIMIT:
                raise UsageError(
                    f"{path} has {size} bytes, more than the limit of {CONTENT_LIMIT}",
                    code="document_too_large",
                    hint="split the file",
                )
        for path in files:
            kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            try:
                path.name.encode()
                yield Document(path.relative_to(self.folder).as_posix(), path.read_bytes(), kind)
            except (OSError, UnicodeEncodeError) as error:
                raise UsageError(
                    f"{str(path)!r}: {getattr(error, 'strerror', None) or 'the name is not UTF-8'}",
                    code="document_unreadable",
                    hint="fix or remove the file",
                ) from error


@dataclass(frozen=True, slots=True)
class InMemoryCorpus:
    """Documents that are already in memory."""

    items: Iterable[Document]

    def documents(self) -> Iterable[Document]:
        """Return the documents."""
        return self.items


def batches(documents: Iterable[Document], most: int) -> Iterator[list[Document]]:
    """Split documents into batches of at most `most` that one request each may send."""
    batch: list[Document] = []
    size = 0
    for document in documents:
        too_large = size + len(document.content) > _BATCH_BYTES
        if batch and (too_large or len(batch) == most):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += len(document.content)
    if batch:
        yield batch
