"""What an SDK has retrieved, kept so that a killed replay goes on where it ended."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from memconform.contract.core import Version
from memconform.errors import UsageError
from memconform.replay.records import ReplayJournalHeader, ReplayRetrieval
from memconform.storage.append_only import AppendOnly, whole_lines


class RetrievalJournal:
    """Records of one SDK, in one file for each time that it was started.

    A record is appended once the index was verified after it. Records are read back from the file:
    their texts may be half of the harness's memory.
    """

    def __init__(self, folder: Path, header: ReplayJournalHeader) -> None:
        """Read what earlier starts have recorded.

        Raises:
            UsageError: if a file is none of this SDK's journals (`journal_unreadable`), or one of
                another build or other settings (`resume_mismatch`).
        """
        self._folder = folder
        self._header = header
        self._places: dict[str, tuple[Path, int]] = {}
        self._redacted: dict[str, ReplayRetrieval] = {}
        """Records whose texts the file has masked."""
        self._file: AppendOnly | None = None
        self.version: str | None = None
        """Version of the daemon that was asked last."""
        self._earlier = sorted(folder.glob("*.jsonl"))
        for path in self._earlier:
            self._read(path)

    def __contains__(self, question: object) -> bool:
        return question in self._places or question in self._redacted

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, question: str) -> ReplayRetrieval:
        """The record of a question; raises KeyError without one."""
        if question in self._redacted:
            return self._redacted[question]
        path, offset = self._places[question]
        with path.open("rb") as file:
            file.seek(offset)
            return ReplayRetrieval.model_validate_json(file.readline())

    def append(self, records: Sequence[ReplayRetrieval]) -> None:
        """Add records; raises ResultsError if they cannot be written (`journal_unwritable`)."""
        if self._file is None:
            # Not their count: a damaged one may have been deleted, as the hint says.
            numbers = [int(each.stem) for each in self._earlier if each.stem.isdecimal()]
            path = self._folder / f"{max(numbers, default=0) + 1:03}.jsonl"
            self._file = AppendOnly(path)
            self._file.append(self._header.model_copy(update={"version": self.version}))
        if not records:
            return
        offsets = self._file.append(*records)
        for record, offset in zip(records, offsets, strict=True):
            if record.redacted:
                self._redacted[record.question] = record
            else:
                self._places[record.question] = (self._file.path, offset)

    def require_version(self, version: Version | None) -> None:
        """Note the version of the daemon that is asked from now on.

        Raises:
            UsageError: if another version answered what was recorded before (`resume_mismatch`).
        """
        reported = version.version if version else None
        if self._places and reported != self.version:
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
            self._file.close({"stage": "footer", "ended": ended})

    def _read(self, path: Path) -> None:
        offset = 0
        try:
            for offset, line in whole_lines(path):
                if not offset:
                    self._require_same(path, ReplayJournalHeader.model_validate_json(line))
                    continue
                record = ReplayRetrieval.model_validate_json(line)
                if record.error is None and not record.redacted:
                    self._places[record.question] = (path, offset)
        except (OSError, ValidationError) as error:
            raise UsageError(
                f"{path} is damaged at byte {offset}",
                code="journal_unreadable",
                hint="delete it: its questions are asked again, and no model is called for that",
            ) from error

    def _require_same(self, path: Path, header: ReplayJournalHeader) -> None:
        self.version = header.version
        if header.model_copy(update={"version": None}) != self._header:
            raise UsageError(
                f"{path} is of another build of {self._header.sdk}, or of other settings",
                code="resume_mismatch",
                hint="give another --output, or the same SDK and settings as before",
            )
