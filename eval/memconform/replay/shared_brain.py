"""The shared brain on disk: one file of documents, complete or absent, that fills every daemon."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from memconform.daemons.limits import why_unwritable
from memconform.errors import UsageError
from memconform.ingest.documents import Document
from memconform.records import Failure, Record
from memconform.replay.documents import Fact, SharedBrain, fact_documents, session_document
from memconform.storage.sink import Masked, replacing

IngestMode = Literal["bulk", "replay"]
"""Sessions alone, or sessions and the facts that were extracted from them."""

FORMAT = 2
"""Changed with every change of what the documents contain."""

_SUFFIX = ".jsonl"


class BrainKey(Record):
    """Everything that the documents of a brain depend on."""

    format: int = FORMAT
    dataset_sha256: str
    questions: tuple[str, ...]
    """Ids, in the order of the file."""
    mode: IngestMode
    project: str
    extractor: str | None
    """Model that extracted the facts; None for sessions alone."""
    extractor_address: str = ""
    """Digest of the service's address: two servers may give one name to two models."""
    prompt: str | None = None
    """Version and digest of the extraction prompt."""
    context_prompt: str | None = None
    """Digest of the prompt that situates each fact; None without contexts."""

    @property
    def digest(self) -> str:
        """Names the brain's file; that of a brain without contexts is as it was before them."""
        unused = {"context_prompt"} if self.context_prompt is None else None
        return hashlib.sha256(self.model_dump_json(exclude=unused).encode()).hexdigest()[:32]


class BrainRecord(Record):
    """What a brain was made of."""

    key: BrainKey
    sessions: int
    facts: int
    served_models: tuple[str, ...] = ()
    """Models that the extractor's service says it used."""
    by_heuristic: dict[str, Failure] = Field(default_factory=dict)
    """Sessions, by path, whose facts are those of the heuristic, and why."""
    without_context: dict[str, Failure] = Field(default_factory=dict)
    """Facts that could not be situated, by session and number, and why."""


class _Footer(Record):
    documents: int
    sha256: str
    """Hash of all lines before this one."""


@dataclass(frozen=True, slots=True)
class BrainFile:
    """A brain that was read to its end and found complete; a source of documents for seeding."""

    path: Path
    record: BrainRecord
    size: int
    """Documents."""
    sha256: str

    def documents(self) -> Iterator[Document]:
        """Yield the documents, in the order in which they are ingested."""
        with self.path.open(encoding="utf-8") as file:
            next(file)
            for _, line in zip(range(self.size), file, strict=False):
                row = json.loads(line)
                yield Document(row["path"], row["content"].encode(), "text/markdown")


def brain_path(folder: Path, key: BrainKey) -> Path:
    """Where a brain is kept in a folder of brains."""
    return folder / f"{key.digest}{_SUFFIX}"


def write_brain(
    path: Path,
    record: BrainRecord,
    brain: SharedBrain,
    facts: Mapping[str, Iterable[Fact]],
) -> BrainFile:
    """Write a brain under a temporary name, and rename it once it is complete.

    Raises:
        UsageError: for a session that exceeds the contract's limit (`item_too_large`).
        ResultsError: if the file cannot be written (`results_unwritable`).
    """
    digest, size = hashlib.sha256(), 0
    with replacing(path) as file:

        def write(row: Mapping[str, Any]) -> None:
            line = json.dumps(row, sort_keys=True).encode()
            digest.update(line)
            # Not masked: daemons are filled from it, and a key that is a common word would change
            # what they hold. It has nothing but the dataset and what was extracted from it.
            file.write_masked(Masked(line + b"\n"))

        write(record.model_dump(mode="json"))
        for document in _documents(record.key, brain, facts):
            write({"path": document.path, "content": document.content.decode()})
            size += 1
        footer = _Footer(documents=size, sha256=digest.hexdigest())
        file.write_json(footer, indent=None)
    return BrainFile(path, record, size, footer.sha256)


def _documents(
    key: BrainKey, brain: SharedBrain, facts: Mapping[str, Iterable[Fact]]
) -> Iterator[Document]:
    for placed in brain.sessions.values():
        yield session_document(placed)
        if key.mode == "replay":
            yield from fact_documents(placed, facts[placed.path], key.project)


def read_brain(path: Path, key: BrainKey) -> BrainFile | None:
    """The brain at a path; None if there is none.

    Raises:
        UsageError: if it is damaged, or another brain than its name says (`brain_damaged`).
    """
    if not path.exists():
        return None
    digest, size = hashlib.sha256(), 0
    record, footer = None, None
    try:
        with path.open("rb") as file:
            for line in file:
                if footer is not None:
                    raise ValueError("it goes on after its end")  # noqa: TRY301 - one way out
                row = json.loads(line)
                if record is None:
                    record = BrainRecord.model_validate(row)
                elif "sha256" in row:
                    footer = _Footer.model_validate(row)
                    continue
                else:
                    size += 1
                digest.update(line.rstrip(b"\n"))
        if record is None or footer is None:
            raise ValueError("its end is missing")  # noqa: TRY301 - one way out
        if (footer.documents, footer.sha256) != (size, digest.hexdigest()):
            raise ValueError("its documents differ from those that were written")  # noqa: TRY301
        if record.key != key:
            raise ValueError("it was made of other questions or settings")  # noqa: TRY301
    except (OSError, ValueError, TypeError, ValidationError) as error:
        raise UsageError(
            f"{path} is no complete brain: {error}",
            code="brain_damaged",
            hint="delete it; the replies that it was made of are cached and cost nothing again",
        ) from error
    return BrainFile(path, record, size, footer.sha256)


def make_brains_folder(folder: Path) -> None:
    """Make the folder in which brains are kept, before one is paid for.

    Raises:
        UsageError: `cache_unwritable` if none can be kept there.
    """
    error: OSError | None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        error = why_unwritable(folder)
    except OSError as raised:
        error = raised
    if error is not None:
        raise UsageError(
            f"{folder}: {error.strerror}",
            code="cache_unwritable",
            hint="brains are kept there; name another folder by --brain-cache or MEMCONFORM_CACHE",
        ) from error
