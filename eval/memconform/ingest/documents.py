"""What a brain is filled with: reference answers, the files of a folder, or documents of a kind."""

import hashlib
import mimetypes
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

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


class Corpus(Protocol):
    """What a brain is filled with."""

    def documents(self) -> Iterable[Document]:
        """The documents, in one order each time, read anew.

        Raises:
            UsageError: where they cannot be read, or are not what a daemon can be sent.
        """
        ...


@dataclass(frozen=True, slots=True)
class ReferenceAnswers:
    """One document a row of a dataset that has a reference answer, whichever rows are asked."""

    dataset: Dataset

    @property
    def identity(self) -> str:
        """What tells it from other corpora of that dataset."""
        return "reference"

    def documents(self) -> Iterator[Document]:
        """Raises UsageError where no row has a reference answer."""
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
                hint="give --corpus DIR, or add reference_answer",
            )


@dataclass(frozen=True, slots=True)
class CorpusFolder:
    """Every file below a folder that counts as a document."""

    folder: Path

    @property
    def identity(self) -> str:
        """The SHA-256 over paths and contents; raises as `documents` does."""
        digest = hashlib.sha256()
        for document in self.documents():
            content = hashlib.sha256(document.content).hexdigest()
            digest.update(f"{document.path}\0{content}\0".encode())
        return f"corpus:{digest.hexdigest()}"

    def documents(self) -> Iterator[Document]:
        """Raises UsageError where the folder is missing or empty, or a file is too large."""
        files = corpus_files(self.folder)
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
                yield Document(path.relative_to(self.folder).as_posix(), path.read_bytes(), kind)
            except (OSError, UnicodeEncodeError) as error:
                raise UsageError(
                    f"{str(path)!r}: {getattr(error, 'strerror', None) or 'the name is not UTF-8'}",
                    code="document_unreadable",
                    hint="mend or remove the file",
                ) from error


@dataclass(frozen=True, slots=True)
class GivenDocuments:
    """Documents that are there already."""

    given: Iterable[Document]

    def documents(self) -> Iterable[Document]:
        return self.given
