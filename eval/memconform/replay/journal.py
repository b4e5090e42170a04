"""What an SDK has retrieved, kept so that a killed replay goes on where it ended."""

from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter

from memconform.contract.core import Version
from memconform.errors import UsageError
from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.measuring.validity import Place, Statement, Validity
from memconform.replay.records import ReplayJournalHeader, ReplayRetrieval
from memconform.storage.journal import JournalFile, has_begun, read_header, read_records

_DELETE = "delete it: its questions are asked again, and no model is called for that"


@cache
def _reader() -> TypeAdapter[ReplayRetrieval | Statement]:
    return TypeAdapter(Annotated[ReplayRetrieval | Statement, Field(discriminator="stage")])


class RetrievalJournal:
    """Records of one SDK, in one file for each time that it was started.

    A record counts once a statement that the index is whole has followed it. Records are read back
    from the file: their texts may be half of the harness's memory.
    """

    def __init__(self, folder: Path, header: ReplayJournalHeader) -> None:
        """Read what earlier starts have recorded.

        Raises:
            UsageError: if a file is damaged or not a journal of this version
                (`journal_unreadable`), or belongs to another build or other settings
                (`resume_mismatch`).
        """
        self._folder = folder
        self._header = header
        self._earlier: dict[str, tuple[Path, int]] = {}
        """Where the records are that counted when their file ended."""
        self._offsets: dict[str, int] = {}
        """Where they are in the file of this start."""
        self._validity = Validity[str]()
        self._redacted: dict[str, ReplayRetrieval] = {}
        """Records of this start whose texts the file has masked."""
        self._file: JournalFile | None = None
        self.version: str | None = None
        """Version of the daemon that was asked last."""
        self._files = sorted(folder.glob("*.jsonl"))
        for path in filter(has_begun, self._files):
            self._read(path)

    def __contains__(self, question: object) -> bool:
        return question in self._earlier or self._validity.counts(str(question))

    def __len__(self) -> int:
        return len(self._earlier) + sum(map(self._validity.counts, self._offsets))

    def __getitem__(self, question: str) -> ReplayRetrieval:
        """The record of a question; raises KeyError without one."""
        if question in self._redacted:
            return self._redacted[question]
        path, offset = (
            (self._opened().path, self._offsets[question])
            if question in self._offsets
            else self._earlier[question]
        )
        with path.open("rb") as file:
            file.seek(offset)
            return ReplayRetrieval.model_validate_json(file.readline())

    def append(self, record: ReplayRetrieval) -> None:
        """Add a record; raises ResultsError if it cannot be written (`journal_unwritable`)."""
        [offset] = self._opened().append(record)
        if record.error is None:
            self._offsets[record.question] = offset
            self._validity.add(record.question, Place())
            if record.redacted:
                self._redacted[record.question] = record

    def state(self, statement: Statement) -> None:
        """Add whether the records of this start count; raises as `append`."""
        self._opened().append(statement)
        self._validity.apply(statement)

    def _opened(self) -> JournalFile:
        if self._file is None:
            # Not their count: a damaged one may have been deleted, as the hint says.
            numbers = [int(each.stem) for each in self._files if each.stem.isdecimal()]
            path = self._folder / f"{max(numbers, default=0) + 1:03}.jsonl"
            header = self._header.model_copy(update={"version": self.version})
            self._file = JournalFile(path, header)
        return self._file

    def require_version(self, version: Version | None) -> None:
        """Note the version of the daemon that is asked from now on.

        Raises:
            UsageError: if another version answered what was recorded before (`resume_mismatch`).
        """
        reported = version.version if version else None
        if self._earlier and reported != self.version:
            raise UsageError(
                f"{self._header.sdk} was version {self.version} when the replay began, and is"
                f" {reported} now",
                code="resume_mismatch",
                hint="give another --output, or the same version as before",
            )
        self.version = reported

    def close(self, ended: str) -> None:
        """Close the file, if one was opened."""
        if self._file is not None:
            self._file.close(ended=ended)

    def _read(self, path: Path) -> None:
        self._require_same(path, read_header(path, ReplayJournalHeader, _DELETE))
        offsets, validity = dict[str, int](), Validity[str]()
        for offset, each in read_records(path, _reader(), hint=_DELETE):
            match each:
                case ReplayRetrieval(error=None, redacted=False) as record:
                    offsets[record.question] = offset
                    validity.add(record.question, Place())
                case IndexVerified() | IndexInvalidated() as statement:
                    validity.apply(statement)
        self._earlier |= {
            question: (path, start)
            for question, start in offsets.items()
            if validity.counts(question)
        }

    def _require_same(self, path: Path, header: ReplayJournalHeader) -> None:
        self.version = header.version
        if header.model_copy(update={"version": None}) != self._header:
            raise UsageError(
                f"{path} is of another build of {self._header.sdk}, or of other settings",
                code="resume_mismatch",
                hint="give another --output, or the same SDK and settings as before",
            )
