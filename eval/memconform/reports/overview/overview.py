"""Everything that a report shows, read from result files."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self, TypeVar

from pydantic import BaseModel

from memconform.bench.records import BenchReport
from memconform.bench.wmb.records import SCORE_SCHEMA, WmbScore
from memconform.conformance.mutation.results import MutationReport
from memconform.conformance.results import ConformReport
from memconform.errors import UsageError
from memconform.fuzzing.results import FuzzReport
from memconform.replay.records import LmeParity, LmeResult
from memconform.reports.machine import REPORT_SCHEMA
from memconform.reports.overview.groups import (
    QuestionRow,
    RunGroup,
    compare_with_baselines,
    group_runs,
    validate,
)
from memconform.reports.overview.sources import (
    ONE_DOCUMENT,
    Source,
    find_sources,
    read_document,
    read_run_report,
    unreadable,
)
from memconform.reports.overview.subjects import subject
from memconform.reports.progress import StepProgress
from memconform.results.loaded_runs import LoadedRun, read_run
from memconform.results.records import ParityReport
from memconform.results.references import SCORED, read_subjects
from memconform.results.wmb_scores import has_outcomes
from memconform.runs.results import RESULT_SCHEMA
from memconform.storage.provenance import ReportHeader
from memconform.storage.sink import replacing

_Kind = TypeVar("_Kind", bound=BaseModel)

RowTaker = Callable[[int, QuestionRow], None]
"""Takes a row of the group with a number."""


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


@dataclass(slots=True)
class Overview(AbstractContextManager["Overview"]):
    """Results by kind; `with` removes the temporary files of runs that came inside others."""

    groups: list[RunGroup]
    results: StoredResults
    baselines: StoredResults
    _folder: "TemporaryDirectory[str]"
    quiet: bool = False
    """Whether reading shows no progress."""

    @property
    def not_shown(self) -> list[str]:
        """Files of named folders that could not be read, with the reason."""
        return [*self.results.skipped, *self.baselines.skipped]

    @property
    def conformance(self) -> list[ConformReport]:
        return self.results.of(ConformReport)

    @property
    def mutation(self) -> list[MutationReport]:
        return self.results.of(MutationReport)

    @property
    def fuzzing(self) -> list[FuzzReport]:
        return self.results.of(FuzzReport)

    @property
    def benches(self) -> list[BenchReport]:
        return self.results.of(BenchReport)

    @property
    def replays(self) -> list[LmeResult]:
        return self.results.of(LmeResult)

    @property
    def replay_parity(self) -> list[LmeParity]:
        return self.results.of(LmeParity)

    @property
    def parities(self) -> list[ParityReport]:
        return self.results.of(ParityReport)

    @property
    def wmb(self) -> list[WmbScore]:
        return self.results.of(WmbScore)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the temporary files."""
        self._folder.cleanup()

    @classmethod
    def load(
        cls,
        references: Sequence[str],
        baselines: Sequence[str],
        output: Path,
        *,
        quiet: bool = False,
    ) -> Self:
        """Read results and baselines; the questions of runs are read by `read_questions`.

        Raises:
            UsageError: as `StoredResults.read`, and if nothing can be shown (`unknown_run`).
        """
        folder = TemporaryDirectory(prefix="memconform-report-")
        try:
            current, earlier = (_stored(Path(folder.name) / name) for name in ("now", "before"))
            current.read(references, output)
            earlier.read(baselines, output)
            current.require_any()
            groups = group_runs(current.runs, earlier.runs)
            return cls(groups, current, earlier, folder, quiet)
        except BaseException:
            folder.cleanup()
            raise

    def read_questions(self, take: RowTaker) -> None:
        """Read the questions of every group once, compare its runs, and show the progress.

        Raises:
            UsageError: if a file contradicts itself, or a baseline's settings differ
                (`unlike_runs`, `result_unreadable`).
        """
        total = sum(group.current[0].summary.total for group in self.groups)
        with StepProgress("reading questions", total, quiet=self.quiet) as step:
            for number, group in enumerate(self.groups):
                compare_with_baselines(group)

                def take_row(row: QuestionRow, number: int = number) -> None:
                    take(number, row)
                    step.advance()

                group.read_rows(take_row)

    def period(self) -> tuple[datetime, datetime]:
        """When the first result was begun and the last one was finished, as far as is known."""
        moments = list(self._moments())
        return min(moments), max(moments)

    def _moments(self) -> Iterator[datetime]:
        for run in self.results.runs:
            yield datetime.fromisoformat(run.summary.started_at)
            yield datetime.fromisoformat(run.summary.finished_at)
        for document in self.results.documents:
            if isinstance(document, ReportHeader):
                yield document.started_at.astimezone(UTC)
            if isinstance(document, ConformReport):
                yield document.finished_at.astimezone(UTC)
        if not any(isinstance(d, ReportHeader) for d in self.results.documents):
            # Comparisons of runs do not say when they were made.
            yield from () if self.results.runs else (datetime.now(UTC),)


def _started(document: BaseModel) -> datetime:
    """When a document was begun; a comparison of runs does not say."""
    if isinstance(document, ReportHeader):
        return document.started_at.astimezone(UTC)
    return datetime.min.replace(tzinfo=UTC)


def _stored(folder: Path) -> StoredResults:
    folder.mkdir()
    return StoredResults(folder)
