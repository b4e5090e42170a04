"""Results by kind, read from files of any verb."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from memconform.bench.wmb.records import SCORE_SCHEMA
from memconform.errors import UsageError
from memconform.reports.machine import REPORT_SCHEMA
from memconform.reports.overview.groups import validate
from memconform.reports.overview.sources import (
    ONE_DOCUMENT,
    Source,
    find_sources,
    read_document,
    read_run_report,
    unreadable,
)
from memconform.reports.overview.subjects import subject
from memconform.results.loaded_runs import LoadedRun, read_run
from memconform.results.references import SCORED, read_subjects
from memconform.results.wmb_scores import has_outcomes
from memconform.runs.results import RESULT_SCHEMA
from memconform.storage.provenance import ReportHeader
from memconform.storage.sink import replacing

_Kind = TypeVar("_Kind", bound=BaseModel)


@dataclass(slots=True)
class StoredResults:
    """Results by kind, as files hold them."""

    folder: Path
    """For runs that came inside other files."""
    runs: list[LoadedRun] = field(default_factory=list)
    documents: list[BaseModel] = field(default_factory=list)
    sources: list[Path] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    """Files of a named folder that could not be read, with the reason."""
    skipped_sdks: list[str] = field(default_factory=list)
    """SDKs that a command skipped, with the reason."""

    def read(self, references: Sequence[str], output: Path) -> None:
        """Read every result; copies of one count once.

        Raises:
            UsageError: if a named result is missing or unreadable, or two files contradict each
                other about a run (`unknown_run`, `result_unreadable`).
        """
        for source in find_sources(references, output):
            try:
                self._read_source(source)
            except UsageError as error:
                if source.named:
                    raise
                self.skipped.append(f"{source.path}: {error.excerpt or error.message}")
            else:
                self.sources.append(source.path)

    def require_any(self) -> None:
        """Raise UsageError `unknown_run` if no result could be read."""
        if not self.sources:
            raise UsageError(
                "no result could be read",
                code="unknown_run",
                hint="name a result that `run`, `bench` or `conform` wrote",
                excerpt="\n".join(self.skipped),
            )

    def of(self, kind: type[_Kind]) -> list[_Kind]:
        """The documents of a kind; of several about the same thing the latest."""
        latest: dict[object, _Kind] = {}
        of_kind = [document for document in self.documents if isinstance(document, kind)]
        for document in sorted(of_kind, key=_started):
            latest[subject(document)] = document
        return list(latest.values())

    def _read_source(self, source: Source) -> None:
        if source.schema in (RESULT_SCHEMA, *SCORED) and (
            source.schema != SCORE_SCHEMA or has_outcomes(source.path)
        ):
            for run in read_subjects(source.path, source.pattern).values():
                self._add_run(run, check=not source.named)
        if source.schema in ONE_DOCUMENT:
            document = read_document(source)
            if document not in self.documents:
                self.documents.append(document)
        if source.schema == REPORT_SCHEMA:
            report = read_run_report(source)
            self.skipped_sdks += [f"{skip.sdk}: {skip.reason}" for skip in report.skipped]
            for index, stored in enumerate(report.runs):
                # A file of its own, so that its questions can be streamed.
                path = self.folder / f"{len(self.sources)}-{index}.json"
                with replacing(path) as file:
                    file.write_json(stored, indent=None)
                self._add_run(read_run(path), check=not source.named)

    def _add_run(self, run: LoadedRun, *, check: bool) -> None:
        """Add a run unless it is another copy of one that was added.

        `check` reads it whole: one bad file of a folder must not end the report of the others.
        """
        for moment in (run.summary.started_at, run.summary.finished_at):
            try:
                datetime.fromisoformat(moment)
            except ValueError as error:
                raise unreadable(run.path, str(error)) from error
        same = [r for r in self.runs if r.summary.run_id == run.summary.run_id]
        if same and same[0].summary != run.summary:
            raise unreadable(
                run.path, f"{same[0].path} says otherwise about run {run.summary.run_id}"
            )
        if not same:
            if check:
                validate(run)
            self.runs.append(run)


def _started(document: BaseModel) -> datetime:
    """When a document was begun; a comparison of runs does not say."""
    if isinstance(document, ReportHeader):
        return document.started_at.astimezone(UTC)
    return datetime.min.replace(tzinfo=UTC)
